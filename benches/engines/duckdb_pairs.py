"""Begins and ends of a trace, paired and summed by DuckDB: the peer of `undertick report`.

Usage: duckdb_pairs.py NAME.ut. Spans of one event are not nested here, so an end belongs to the
row before it of the same thread and event. Prints the number of pairs.
"""

import sys

import duckdb

print(
    duckdb.sql(
        f"""
        with paired as (
          select event, kind, ts - lag(ts) over by_id as took, lag(kind) over by_id as before
          from '{sys.argv[1]}/events.parquet' where kind in (1, 2)
          window by_id as (partition by ring, event order by ts, kind)
        ), cells as (
          select event, cast(floor(log2(greatest(took, 1)) * 16) as integer) as cell,
                 count(*) as n, sum(took) as total, min(took) as least, max(took) as most
          from paired where kind = 2 and before = 1 group by event, cell
        )
        select sum(n) from cells"""
    ).fetchall()[0][0]
)
