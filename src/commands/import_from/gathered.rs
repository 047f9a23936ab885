//! What a source contains, while it is read.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use import_from::{Household, Report, STREAMS_MAX, SourceRow, SourceStream, SourceTable};
use rest::PICTURE_BYTES_MAX;
use serde_json::{Map, Value};
use services::image_types::{ImageType, PictureFormat};
use tempfile::TempDir;
use uuid::Uuid;

use super::spool::Spool;

/// The records that were read so far. Streams are in a temporary file.
pub(super) struct Gathered {
    pub(super) household: Household,
    pub(super) streams: Spool,
    pub(super) report: Report,
    found: BTreeSet<SourceTable>,
    /// Numbers of rows in tables without a place in the gateway.
    unused: BTreeMap<&'static str, u64>,
    n_streams: usize,
    /// Files of logos and pictures of users that were fetched, under their new names.
    pub(super) images: TempDir,
    image_bytes: u64,
    /// Names of the fetched pictures of users, by the id of the user in the source.
    pub(super) pictures: BTreeMap<u32, String>,
}

/// Maximum size of all fetched logos and pictures, in bytes.
const IMAGES_BYTES_MAX: u64 = 512 << 20;

impl Gathered {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            household: Household::default(),
            streams: Spool::new()?,
            report: Report::default(),
            found: BTreeSet::new(),
            unused: BTreeMap::new(),
            n_streams: 0,
            images: tempfile::tempdir().context("failed to create a temporary folder")?,
            image_bytes: 0,
            pictures: BTreeMap::new(),
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
            return self.add_stream(&SourceRow::from_object(table, object));
        }
        Ok(self.household.add_object(table, object)?)
    }

    /// Counts rows of a table that is not imported.
    pub(super) fn count_unused(&mut self, label: &'static str) {
        *self.unused.entry(label).or_default() += 1;
    }

    /// Keeps the file of a logo. Returns its new name, or `None` if it is not an image or there are too many.
    pub(super) fn add_logo_file(&mut self, bytes: &[u8]) -> anyhow::Result<Option<String>> {
        match ImageType::from_content(bytes) {
            Some(image) => self.add_image(bytes, image.extension()),
            None => Ok(None),
        }
    }

    /// Keeps the picture of a user, if it is one that the gateway accepts and there are not too many.
    pub(super) fn add_picture(&mut self, user: u32, bytes: &[u8]) -> anyhow::Result<()> {
        let format = PictureFormat::from_content(bytes).filter(|_| bytes.len() as u64 <= PICTURE_BYTES_MAX);
        if let Some(name) = format.map(|it| self.add_image(bytes, it.extension())).transpose()?.flatten() {
            self.pictures.insert(user, name);
        }
        Ok(())
    }

    /// Keeps a file under a new name with this extension. Returns `None` if there are too many.
    fn add_image(&mut self, bytes: &[u8], extension: &str) -> anyhow::Result<Option<String>> {
        self.image_bytes += bytes.len() as u64;
        if self.image_bytes > IMAGES_BYTES_MAX {
            return Ok(None);
        }
        let name = format!("{}.{extension}", Uuid::new_v4().simple());
        std::fs::write(self.images.path().join(&name), bytes).context("failed to write a temporary file")?;
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

    /// Adds what the source lacks and what is not imported to the report. Fails if it has no table that matters.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        if self.found.is_empty() {
            bail!("the source has none of the expected tables; is it an export of Dispatcharr's database?");
        }
        for table in SourceTable::all().filter(|it| !self.found.contains(it)) {
            // The REST interface contains these in other records, or has no table for them.
            self.report.note(table.label(), "not found in the source");
        }
        for (label, count) in &self.unused {
            self.report.note(format!("{count} {label}"), "they are not imported");
        }
        Ok(())
    }
}
