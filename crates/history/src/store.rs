//! A history: a directory of Parquet files, one for each measurement that was added.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type};
use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use undertick_format::input;

use crate::HistoryError;

/// Most files, and most rows of all files.
const MOST_FILES: usize = 100_000;
const MOST_ROWS: usize = 20_000_000;
/// Longest part of a version in a file's name.
const NAME_BYTES: usize = 24;

/// One benchmark in one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Time of the version, Unix time in seconds: the order of the history.
    pub unix_s: f64,
    /// When it was added, Unix time in seconds: the order of versions of the same time.
    pub added_unix_s: f64,
    /// The version, for example a commit.
    pub version: String,
    /// The machine.
    pub machine: String,
    /// The program or the set of benchmarks.
    pub suite: String,
    /// The benchmark.
    pub benchmark: String,
    /// Number of the process within the measurement.
    pub process: i32,
    /// Time of an iteration, ns.
    pub time_ns: f64,
}

fn schema() -> Schema {
    let text = |name| Field::new(name, DataType::Utf8, false);
    Schema::new(vec![
        Field::new("unix_s", DataType::Float64, false),
        Field::new("added_unix_s", DataType::Float64, false),
        text("version"),
        text("machine"),
        text("suite"),
        text("benchmark"),
        Field::new("process", DataType::Int32, false),
        Field::new("time_ns", DataType::Float64, false),
    ])
}

/// Adds rows to a history, which is made if there is none; returns the new file.
///
/// # Errors
/// There are no rows, one has no time, or the file cannot be written; then nothing is left.
pub fn add(dir: &Path, rows: &[Row]) -> Result<PathBuf, HistoryError> {
    let first = rows
        .first()
        .ok_or_else(|| HistoryError::Usage("there is no benchmark to add".to_owned()))?;
    fs::create_dir_all(dir).map_err(|e| HistoryError::file(dir, e))?;
    let texts = |of: fn(&Row) -> &String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Float64Array::from_iter_values(
            rows.iter().map(|row| row.unix_s),
        )),
        Arc::new(Float64Array::from_iter_values(
            rows.iter().map(|row| row.added_unix_s),
        )),
        texts(|row| &row.version),
        texts(|row| &row.machine),
        texts(|row| &row.suite),
        texts(|row| &row.benchmark),
        Arc::new(Int32Array::from_iter_values(
            rows.iter().map(|row| row.process),
        )),
        Arc::new(Float64Array::from_iter_values(
            rows.iter().map(|row| row.time_ns),
        )),
    ];
    let schema = Arc::new(schema());
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
        .map_err(|e| HistoryError::file(dir, e))?;
    let shared = fs::Permissions::from_mode(0o666); // as far as the umask allows
    let file = tempfile::Builder::new()
        .permissions(shared)
        .tempfile_in(dir);
    let mut file = file.map_err(|e| HistoryError::file(dir, e))?;
    let written = ArrowWriter::try_new(&mut file, schema, None).and_then(|mut writer| {
        writer.write(&batch)?;
        writer.close()
    });
    written.map_err(|e| HistoryError::file(dir, e))?;
    // Two measurements of a version, made in two copies of the history, must not have one name.
    let stem = format!(
        "{:.0}-{}-{:08x}",
        first.unix_s,
        file_name(&first.version),
        digest(rows)
    );
    for number in 0_u32.. {
        let name = match number {
            0 => format!("{stem}.parquet"),
            number => format!("{stem}-{number}.parquet"),
        };
        let path = dir.join(name);
        match file.persist_noclobber(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {
                file = error.file;
            }
            Err(error) => return Err(HistoryError::file(&path, error.error)),
        }
    }
    Err(HistoryError::file(dir, "no name is free"))
}

/// A number that differs between measurements.
fn digest(rows: &[Row]) -> u32 {
    let mut hasher = DefaultHasher::new();
    for row in rows {
        (&row.machine, &row.suite, &row.benchmark, row.process).hash(&mut hasher);
        (row.time_ns.to_bits(), row.added_unix_s.to_bits()).hash(&mut hasher);
    }
    hasher.finish() as u32
}

/// What of a version can stand in a file's name.
fn file_name(version: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    version.chars().filter(is_plain).take(NAME_BYTES).collect()
}

/// Reads all rows, in the order of their times.
///
/// # Errors
/// The directory or a file cannot be read, or is no history.
pub fn read(dir: &Path) -> Result<Vec<Row>, HistoryError> {
    let entries = fs::read_dir(dir).map_err(|e| {
        let mend = "add measurements with `undertick history add`";
        HistoryError::file(dir, format!("{e}; {mend}"))
    })?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "parquet")
        })
        .collect();
    if files.is_empty() || files.len() > MOST_FILES {
        let why = "a history is a directory of Parquet files; add measurements with `undertick history add`";
        return Err(HistoryError::file(dir, why));
    }
    files.sort_unstable();
    let mut rows = Vec::new();
    for path in files {
        read_file(&path, &mut rows)?;
    }
    let time = |row: &Row| (row.unix_s, row.added_unix_s);
    rows.sort_by(|a: &Row, b: &Row| {
        let ((a, a_added), (b, b_added)) = (time(a), time(b));
        a.total_cmp(&b).then(a_added.total_cmp(&b_added))
    });
    Ok(rows)
}

fn read_file(path: &Path, rows: &mut Vec<Row>) -> Result<(), HistoryError> {
    let failed = |why: &dyn std::fmt::Display| HistoryError::file(path, why);
    // Not a pipe, which would be waited for.
    let file = input::open(path).map_err(|e| HistoryError::Usage(e.to_string()))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| failed(&e))?;
    let has = |field: &Arc<Field>| {
        let there = builder.schema().field_with_name(field.name());
        there.is_ok_and(|there| there.data_type() == field.data_type())
    };
    if !schema().fields().iter().all(has) {
        return Err(failed(
            &"not a file of a history: it lacks a column; `undertick history add` writes such files",
        ));
    }
    for batch in builder.build().map_err(|e| failed(&e))? {
        let batch = batch.map_err(|e| failed(&e))?;
        let column = |name: &str| batch.column_by_name(name).map(Arc::clone);
        let (Some(unix), Some(added), Some(process), Some(time)) = (
            column("unix_s"),
            column("added_unix_s"),
            column("process"),
            column("time_ns"),
        ) else {
            return Err(failed(&"it lacks a column"));
        };
        let texts = |name: &str| column(name).map(|of| of.as_string::<i32>().clone());
        let (Some(version), Some(machine), Some(suite), Some(benchmark)) = (
            texts("version"),
            texts("machine"),
            texts("suite"),
            texts("benchmark"),
        ) else {
            return Err(failed(&"it lacks a column"));
        };
        let (unix, time) = (
            unix.as_primitive::<Float64Type>(),
            time.as_primitive::<Float64Type>(),
        );
        let added = added.as_primitive::<Float64Type>();
        let is_whole = batch
            .columns()
            .iter()
            .all(|column| column.null_count() == 0);
        if !is_whole || !unix.values().iter().all(|unix_s| unix_s.is_finite()) {
            return Err(failed(&"a value is missing, or a time is no number"));
        }
        let process = process.as_primitive::<Int32Type>();
        if rows.len() + batch.num_rows() > MOST_ROWS {
            return Err(failed(&format!("more than {MOST_ROWS} rows")));
        }
        rows.extend((0..batch.num_rows()).map(|i| Row {
            unix_s: unix.value(i),
            added_unix_s: added.value(i),
            version: version.value(i).to_owned(),
            machine: machine.value(i).to_owned(),
            suite: suite.value(i).to_owned(),
            benchmark: benchmark.value(i).to_owned(),
            process: process.value(i),
            time_ns: time.value(i),
        }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(unix_s: f64, version: &str, benchmark: &str, time_ns: f64) -> Row {
        Row {
            unix_s,
            added_unix_s: 7.0,
            version: version.to_owned(),
            machine: "a \"machine\"".to_owned(),
            suite: "größe".to_owned(),
            benchmark: benchmark.to_owned(),
            process: 3,
            time_ns,
        }
    }

    #[test]
    fn what_is_added_is_read_in_the_order_of_versions() {
        let dir = tempfile::tempdir().unwrap();
        let history = dir.path().join("new/history");
        let second = [
            row(2e9, "v2/../../x", "b", 5.0),
            row(2e9, "v2/../../x", "c", 6.0),
        ];
        let first = [row(1e9, "v1", "b", 4.0)];
        let added = add(&history, &second).unwrap();
        let name = added.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("2000000000-v2....x-"), "{name}");
        assert_eq!(added.parent(), Some(&*history));
        let one = add(&history, &first).unwrap();
        // The same once more is another measurement, and so is another of the same version.
        let again = add(&history, &first).unwrap();
        assert_ne!(one, again);
        let other = [row(1e9, "v1", "b", 4.5)];
        let name = |path: &Path| path.file_name().unwrap().to_owned();
        let elsewhere = add(&dir.path().join("elsewhere"), &other).unwrap();
        assert_ne!(name(&elsewhere), name(&one));
        assert_eq!(
            fs::metadata(&one).unwrap().permissions().mode() & 0o400,
            0o400
        );
        let rows = read(&history).unwrap();
        assert_eq!(rows, [&first[..], &first, &second].concat());
        assert_eq!(fs::read_dir(&history).unwrap().count(), 3);
    }

    #[test]
    fn what_is_no_history_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let message = |result: Result<Vec<Row>, HistoryError>| result.unwrap_err().to_string();
        assert!(message(read(&dir.path().join("none"))).contains("undertick history add"));
        assert!(message(read(dir.path())).contains("undertick history add"));
        fs::write(dir.path().join("a.parquet"), "PAR1 not").unwrap();
        assert!(message(read(dir.path())).contains("a.parquet"));
        assert!(add(dir.path(), &[]).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
