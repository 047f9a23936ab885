//! What a source contains, while it is read.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use domain::import_from::{Household, Report, STREAMS_MAX, SourceRow, SourceStream, SourceTable};
use serde_json::{Map, Value};
use tempfile::TempDir;
use uuid::Uuid;

use super::spool::Spool;
use crate::images::ImageType;

/// The records that were read so far. Streams are in a temporary file.
pub(super) struct Gathered {
    pub(super) household: Household,
    pub(super) streams: Spool,
    pub(super) report: Report,
    found: BTreeSet<SourceTable>,
    /// Numbers of rows in tables without a place in the gateway.
    unused: BTreeMap<&'static str, u64>,
    n_streams: usize,
    /// Files of logos that were fetched, under their new names.
    pub(super) logo_files: TempDir,
    logo_bytes: u64,
}

/// Maximum size of all fetched logos, in bytes.
const LOGO_FILES_BYTES_MAX: u64 = 512 << 20;

impl Gathered {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            household: Household::default(),
            streams: Spool::new()?,
            report: Report::default(),
            found: BTreeSet::new(),
            unused: BTreeMap::new(),
            n_streams: 0,
            logo_files: tempfile::tempdir().context("failed to create a temporary folder")?,
            logo_bytes: 0,
        })
    }

    /// Notes that the source has this table, with or without rows.
    pub(super) fn found(&mut self, table: SourceTable) {
        self.found.insert(table);
    }

    /// Adds a row of a table.
    pub(super) fn add(&mut self, table: SourceTable, row: SourceRow) -> anyhow::Result<()> {
        if table == SourceTable::Streams {
            return self.add_stream(&row);
        }
        Ok(self.household.add(table, row)?)
    }

    /// Adds an object of the REST interface, with the records in it.
    pub(super) fn add_object(
        &mut self,
        table: SourceTable,
        object: &Map<String, Value>,
    ) -> anyhow::Result<()> {
        if table == SourceTable::Streams {
            return self.add_stream(&SourceRow::of_object(table, object));
        }
        Ok(self.household.add_object(table, object)?)
    }

    /// Counts rows of a table that has no place.
    pub(super) fn count_unused(&mut self, label: &'static str) {
        *self.unused.entry(label).or_default() += 1;
    }

    /// Keeps the file of a logo. Returns its new name, or `None` if it is no image or there are too many.
    pub(super) fn add_logo_file(&mut self, bytes: &[u8]) -> anyhow::Result<Option<String>> {
        let Some(image) = ImageType::of(bytes) else { return Ok(None) };
        self.logo_bytes += bytes.len() as u64;
        if self.logo_bytes > LOGO_FILES_BYTES_MAX {
            return Ok(None);
        }
        let name = format!("{}.{}", Uuid::new_v4().simple(), image.extension());
        std::fs::write(self.logo_files.path().join(&name), bytes)
            .context("failed to write a temporary file")?;
        Ok(Some(name))
    }

    fn add_stream(&mut self, row: &SourceRow) -> anyhow::Result<()> {
        self.n_streams += 1;
        if self.n_streams > STREAMS_MAX {
            bail!("there are more than {STREAMS_MAX} streams, which is the maximum");
        }
        let report = self.report.kind(SourceTable::Streams.label());
        match SourceStream::read(row) {
            Ok(stream) => {
                let what = format!("stream {}", stream.id);
                if !self.streams.push(&stream)? {
                    report.skip(what, "its id occurs twice");
                }
            }
            Err(reason) => {
                let id = row.id("id").map_or_else(|| "without an id".to_owned(), |it| it.to_string());
                report.skip(format!("stream {id}"), reason);
            }
        }
        Ok(())
    }

    /// Adds what the source lacks and what has no place to the report. Fails if it has no table that matters.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        if self.found.is_empty() {
            bail!("the source has none of the expected tables; is it an export of Dispatcharr's database?");
        }
        for table in SourceTable::all().filter(|it| !self.found.contains(it)) {
            // The REST interface contains these in other records, or has no table for them.
            self.report.note(table.label(), "not found in the source");
        }
        for (label, count) in &self.unused {
            self.report.note(format!("{count} {label}"), "the gateway has no place for them yet");
        }
        Ok(())
    }
}
