//! Reads a plain-SQL export of the database, as `pg_dump` writes it, line by line.
//!
//! Rows are read from `COPY … FROM stdin` blocks and from `INSERT` statements; of everything else only the columns of
//! `CREATE TABLE` matter, because an `INSERT` may not name its columns.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use flate2::bufread::MultiGzDecoder;
use import_from::sql::{self, Insert};
use import_from::{SourceRow, SourceTable, unused_table};
use serde_json::Value;

use super::gathered::Gathered;

/// Maximum length of a line or statement, in bytes.
const STATEMENT_BYTES_MAX: usize = 16 << 20;
/// Maximum length of an export in bytes, unpacked. Ends the reading of an archive that unpacks forever.
const EXPORT_BYTES_MAX: u64 = 64 << 30;
/// Maximum number of tables whose columns are remembered.
const TABLES_MAX: usize = 10_000;
/// Maximum number of columns of a table.
const COLUMNS_MAX: usize = 1000;

/// The first and the last comment of an export.
const BEGINNING: &[u8] = b"-- PostgreSQL database dump";
const END: &[u8] = b"-- PostgreSQL database dump complete";

/// Formats that are recognised by their first bytes, and how to turn them into plain SQL.
const OTHER_FORMATS: [(&[u8], &str); 6] = [
    (
        b"PGDMP",
        "this is an export in custom format; turn it into plain SQL with: pg_restore --no-owner --file=export.sql FILE",
    ),
    (
        b"toc.dat",
        "this is an export in tar format; turn it into plain SQL with: pg_restore --no-owner --file=export.sql FILE",
    ),
    (
        b"PK\x03\x04",
        "this is a zip archive; unpack it with unzip, and import the export of the database in it",
    ),
    (b"\x28\xb5\x2f\xfd", "this is compressed with zstd; unpack it with: zstd -d FILE"),
    (b"\xfd7zXZ\0", "this is compressed with xz; unpack it with: xz -d FILE"),
    (b"BZh", "this is compressed with bzip2; unpack it with: bzip2 -d FILE"),
];

/// Reads an export, compressed with gzip or not.
pub(super) fn read(path: &Path, into: &mut Gathered) -> anyhow::Result<()> {
    let shown = path.display();
    let kind = std::fs::metadata(path).with_context(|| format!("failed to read {shown}"))?;
    if kind.is_dir() {
        bail!(
            "{shown} is a folder; turn an export in directory format into plain SQL with: pg_restore --no-owner --file=export.sql FOLDER"
        );
    }
    ensure!(kind.is_file(), "{shown} is not a file");
    let file = File::open(path).with_context(|| format!("failed to read {shown}"))?;
    read_bytes(Box::new(BufReader::new(file)), into).with_context(|| format!("failed to read {shown}"))
}

fn read_bytes(mut bytes: Box<dyn BufRead>, into: &mut Gathered) -> anyhow::Result<()> {
    if bytes.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        bytes = Box::new(BufReader::new(MultiGzDecoder::new(bytes)));
    }
    let start = bytes.fill_buf().context("failed to unpack the file")?;
    if let Some((_, remedy)) = OTHER_FORMATS.iter().find(|it| start.starts_with(it.0)) {
        bail!("{remedy}");
    }
    Reading::new(bytes, into).run()
}

/// Columns of a `COPY` or `INSERT`, with the known ones by name.
struct Columns {
    known: Vec<Option<&'static str>>,
}

impl Columns {
    fn new(table: SourceTable, names: &[String]) -> anyhow::Result<Self> {
        for required in table.required_columns() {
            ensure!(
                names.iter().any(|it| it == required),
                "the table of {} has no column {required}; is it an export of Dispatcharr's database?",
                table.label()
            );
        }
        Ok(Self { known: names.iter().map(|it| table.column(it)).collect() })
    }

    fn row(&self, table: SourceTable, values: impl Iterator<Item = Value>) -> SourceRow {
        let named = self.known.iter().zip(values).filter_map(|(name, value)| name.map(|name| (name, value)));
        SourceRow::new(table, named)
    }
}

/// An export while it is read.
struct Reading<'a> {
    bytes: std::io::Take<Box<dyn BufRead>>,
    /// Number of the present line.
    number: u64,
    line: Vec<u8>,
    into: &'a mut Gathered,
    /// The columns of tables by `CREATE TABLE`.
    created: HashMap<String, Vec<String>>,
    has_beginning: bool,
    has_end: bool,
}

impl<'a> Reading<'a> {
    fn new(bytes: Box<dyn BufRead>, into: &'a mut Gathered) -> Self {
        Self {
            bytes: bytes.take(EXPORT_BYTES_MAX),
            number: 0,
            line: Vec::new(),
            into,
            created: HashMap::new(),
            has_beginning: false,
            has_end: false,
        }
    }

    fn run(mut self) -> anyhow::Result<()> {
        while self.next()? {
            let number = self.number;
            self.line().with_context(|| format!("line {number}"))?;
        }
        ensure!(self.bytes.limit() > 0, "the export is longer than {EXPORT_BYTES_MAX} bytes");
        ensure!(
            self.has_end || !self.has_beginning,
            "the export is truncated: its last line is missing; export the database again"
        );
        Ok(())
    }

    /// Reads the next line, without its end. Returns false at the end of the export.
    fn next(&mut self) -> anyhow::Result<bool> {
        self.line.clear();
        self.number += 1;
        let mut limited = (&mut self.bytes).take(STATEMENT_BYTES_MAX as u64 + 1);
        let n_bytes =
            limited.read_until(b'\n', &mut self.line).context("the file cannot be read to its end")?;
        ensure!(
            self.line.len() <= STATEMENT_BYTES_MAX,
            "line {} is longer than {STATEMENT_BYTES_MAX} bytes",
            self.number
        );
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(n_bytes > 0)
    }

    fn line(&mut self) -> anyhow::Result<()> {
        if self.line.starts_with(b"COPY ") {
            return self.copy();
        }
        if self.line.starts_with(b"INSERT INTO ") {
            return self.insert();
        }
        if self.line.starts_with(b"CREATE TABLE ") {
            return self.create_table();
        }
        if self.line.starts_with(b"SET client_encoding") {
            let line = String::from_utf8_lossy(&self.line).to_uppercase();
            ensure!(
                line.contains("UTF8") || line.contains("UTF-8") || line.contains("SQL_ASCII"),
                "the export is not in UTF-8; export the database again with: pg_dump --encoding=UTF8"
            );
        }
        self.has_beginning |= self.line == BEGINNING;
        self.has_end |= self.line == END;
        Ok(())
    }

    /// Reads a block of rows.
    fn copy(&mut self) -> anyhow::Result<()> {
        let header = std::str::from_utf8(&self.line).context(NOT_UTF8)?;
        let Some(header) =
            header.strip_prefix("COPY ").and_then(|it| it.trim_end().strip_suffix("FROM stdin;"))
        else {
            bail!(
                "this COPY statement does not read from the export; only plain exports of pg_dump can be read"
            );
        };
        let (name, mut names) = sql::table_and_columns(header)?;
        if names.is_empty() {
            names = self.created.get(&name).cloned().unwrap_or_default();
        }
        let table = SourceTable::named(&name);
        let unused = unused_table(&name);
        let columns = table.map(|table| Columns::new(table, &names)).transpose()?;
        if let Some(table) = table {
            self.into.found(table);
        }
        loop {
            if !self.next()? {
                bail!("the export is truncated in the table {name}; export the database again");
            }
            if self.line == b"\\." {
                return Ok(());
            }
            let number = self.number;
            match (table, &columns) {
                (Some(table), Some(columns)) => {
                    let row =
                        copied_row(&self.line, table, columns).with_context(|| format!("line {number}"))?;
                    self.into.add(table, row)?;
                }
                _ => unused.into_iter().for_each(|it| self.into.count_unused(it)),
            }
        }
    }

    /// Reads a statement with rows, which may have several lines.
    fn insert(&mut self) -> anyhow::Result<()> {
        let mut whole = std::mem::take(&mut self.line);
        let mut is_in_text = sql::ends_in_text(&whole, false);
        while is_in_text || !whole.trim_ascii_end().ends_with(b";") {
            if !self.next()? {
                bail!("the export is truncated in a statement; export the database again");
            }
            is_in_text = sql::ends_in_text(&self.line, is_in_text);
            whole.push(b'\n');
            whole.extend_from_slice(&self.line);
            ensure!(
                whole.len() <= STATEMENT_BYTES_MAX,
                "the statement is longer than {STATEMENT_BYTES_MAX} bytes"
            );
        }
        let text = std::str::from_utf8(&whole).context(NOT_UTF8)?;
        let mut insert = Insert::new(text)?;
        let Some(table) = SourceTable::named(&insert.table) else {
            unused_table(&insert.table).into_iter().for_each(|it| self.into.count_unused(it));
            return Ok(());
        };
        self.into.found(table);
        if insert.columns.is_empty() {
            let created = self.created.get(&insert.table).cloned();
            insert.columns = created.with_context(|| {
                format!(
                    "the statement does not name the columns of {}; export with: pg_dump --column-inserts",
                    insert.table
                )
            })?;
        }
        let columns = Columns::new(table, &insert.columns)?;
        while let Some(values) = insert.next_row()? {
            check_width(values.len(), columns.known.len())?;
            self.into.add(table, columns.row(table, values.into_iter()))?;
        }
        Ok(())
    }

    /// Remembers the columns of a table.
    fn create_table(&mut self) -> anyhow::Result<()> {
        let header = String::from_utf8_lossy(&self.line).into_owned();
        let Some(header) =
            header.strip_prefix("CREATE TABLE ").and_then(|it| it.trim_end().strip_suffix('('))
        else {
            return Ok(());
        };
        let (name, _) = sql::table_and_columns(header)?;
        let mut columns = Vec::new();
        while self.next()? && !self.line.starts_with(b")") {
            let line = String::from_utf8_lossy(&self.line);
            columns.extend(sql::column_definition(&line));
            ensure!(columns.len() <= COLUMNS_MAX, "the table {name} has more than {COLUMNS_MAX} columns");
        }
        if let Some(table) = SourceTable::named(&name) {
            self.into.found(table);
        }
        ensure!(self.created.len() < TABLES_MAX, "the export has more than {TABLES_MAX} tables");
        self.created.insert(name, columns);
        Ok(())
    }
}

const NOT_UTF8: &str = "the text is not valid UTF-8; export the database again with: pg_dump --encoding=UTF8";

fn check_width(n_values: usize, n_columns: usize) -> anyhow::Result<()> {
    ensure!(n_values == n_columns, "the row has {n_values} values, but the table has {n_columns} columns");
    Ok(())
}

/// Reads a row of a `COPY` block: values separated by tabs.
fn copied_row(line: &[u8], table: SourceTable, columns: &Columns) -> anyhow::Result<SourceRow> {
    check_width(line.split(|it| *it == b'\t').count(), columns.known.len())?;
    let mut values = Vec::with_capacity(columns.known.len());
    for (name, field) in columns.known.iter().zip(line.split(|it| *it == b'\t')) {
        let value = match name {
            Some(_) if field != b"\\N" => {
                Value::String(String::from_utf8(sql::unescape_copied(field)).ok().context(NOT_UTF8)?)
            }
            _ => Value::Null,
        };
        values.push(value);
    }
    Ok(columns.row(table, values.into_iter()))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn reading(text: &[u8]) -> anyhow::Result<Gathered> {
        let mut into = Gathered::new()?;
        read_bytes(Box::new(Cursor::new(text.to_vec())), &mut into)?;
        Ok(into)
    }

    fn refused(text: &[u8]) -> String {
        format!("{:#}", reading(text).err().expect("an error"))
    }

    const GROUPS: &str = "COPY public.dispatcharr_channels_channelgroup (id, name) FROM stdin;\n";

    #[test]
    fn rows_of_a_copy_block_are_read_with_their_escapes_and_other_tables_are_counted() {
        let text = format!(
            "--\n-- PostgreSQL database dump\n--\n\nSET client_encoding = 'UTF8';\n{GROUPS}1\tNews\\tand\\\\more\n2\tÜber\n\\.\n\n\
             COPY public.django_session (a) FROM stdin;\nINSERT INTO x\n\\.\n\
             COPY public.dispatcharr_channels_recording (id) FROM stdin;\n1\n2\n\\.\n\
             -- PostgreSQL database dump complete\n"
        );
        for text in [text.clone().into_bytes(), gzip(text.as_bytes())] {
            let mut gathered = reading(&text).unwrap();
            let rows = gathered.household.rows(SourceTable::Groups);
            let names: Vec<_> = rows.iter().map(|it| it.text("name").unwrap()).collect();
            assert_eq!(names, ["News\tand\\more", "Über"]);
            gathered.finish().unwrap();
            assert!(gathered.report.to_string().contains("2 recordings: they are not imported"));
        }
    }

    #[test]
    fn rows_of_insert_statements_are_read_with_and_without_column_names() {
        let created = "CREATE TABLE public.accounts_user (\n    id bigint NOT NULL,\n    \"username\" character varying(150),\n    is_active boolean,\n    CONSTRAINT c CHECK ((id > 0))\n);\n";
        let rows = "INSERT INTO public.accounts_user VALUES (1, 'o''neil\n; (x)', true);\n";
        let named = "INSERT INTO public.accounts_user (username, id) VALUES ('a', 2), (NULL, 3);\n";
        let gathered = reading(format!("{created}{rows}{named}").as_bytes()).unwrap();
        let users = gathered.household.rows(SourceTable::Users);
        let read: Vec<_> =
            users.iter().map(|it| (it.id("id"), it.text("username"), it.flag("is_active"))).collect();
        assert_eq!(
            read,
            [(Some(1), Some("o'neil\n; (x)"), Some(true)), (Some(2), Some("a"), None), (Some(3), None, None)]
        );
        assert!(refused(rows.as_bytes()).contains("--column-inserts"));
    }

    #[test]
    fn a_truncated_or_foreign_file_is_refused_with_the_remedy() {
        for (text, part) in [
            (format!("{GROUPS}1\tNews\n").into_bytes(), "truncated in the table"),
            (b"-- PostgreSQL database dump\n".to_vec(), "its last line is missing"),
            (b"INSERT INTO public.accounts_user VALUES (1, 'a\n".to_vec(), "truncated in a statement"),
            (format!("{GROUPS}1\n\\.\n").into_bytes(), "line 2: the row has 1 values, but the table has 2"),
            (b"COPY public.accounts_user (id) FROM stdin;\n\\.\n".to_vec(), "no column username"),
            ([GROUPS.as_bytes(), b"1\t\xff\n\\.\n"].concat(), "--encoding=UTF8"),
            (b"SET client_encoding = 'LATIN1';\n".to_vec(), "--encoding=UTF8"),
            (b"PGDMP\x01\x0e".to_vec(), "pg_restore --no-owner --file=export.sql"),
            (gzip(b"PGDMP\x01\x0e"), "pg_restore"),
            (b"PK\x03\x04zip".to_vec(), "unzip"),
            (b"COPY t FROM '/etc/passwd';\n".to_vec(), "does not read from the export"),
            (gzip(GROUPS.as_bytes())[..30].to_vec(), "cannot be read to its end"),
        ] {
            let message = refused(&text);
            assert!(message.contains(part), "{message}");
        }
        let mut empty = reading(b"SELECT 1;\n").unwrap();
        assert!(empty.finish().unwrap_err().to_string().contains("none of the expected tables"));
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }
}
