"""Begins and ends of a trace, paired and summed by Polars: the peer of `undertick report`.

Usage: polars_pairs.py NAME.ut. As duckdb_pairs.py. Rows of a thread are in the order of time
already. Prints the number of pairs.
"""

import sys

import polars as pl

events = pl.scan_parquet(f"{sys.argv[1]}/events.parquet").filter(pl.col("kind").is_in([1, 2]))
paired = events.select(
    "event",
    "kind",
    took=(pl.col("ts") - pl.col("ts").shift(1)).over("ring", "event"),
    before=pl.col("kind").shift(1).over("ring", "event"),
).filter((pl.col("kind") == 2) & (pl.col("before") == 1))
cell = (pl.col("took").clip(lower_bound=1).log(2) * 16).floor().cast(pl.Int32)
took = pl.col("took")
cells = paired.group_by("event", cell.alias("cell")).agg(
    n=pl.len(), total=took.sum(), least=took.min(), most=took.max()
)
print(cells.select(pl.col("n").sum()).collect(engine="streaming").item())
