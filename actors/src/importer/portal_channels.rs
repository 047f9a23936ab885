//! Collects the channels of a portal, from a list that arrives or from pages.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use domain::egress::Distance;
use domain::panel::{Element, ElementProblem};
use domain::playlist::content::ContentCounts;
use domain::playlist::m3u::{PlaylistProblem, PlaylistProblemKind};
use domain::portal::{PortalError, PortalGenres, PortalList, PortalListParser, read_channel};
use domain::source_url::SourceUrl;
use domain::stream::StreamProperties;
use serde_json::Value;

use super::error::ImportError;
use super::job::Job;
use super::progress::RefreshPhase;
use super::reading::{ListKeys, ReadList};
use crate::memory::usable_bytes;
use crate::playlist::{PlaylistBytes, PlaylistFindings};
use crate::portals::items_of;
use crate::refresh::spool::{self, Spool};

/// The values that all readers of one import need.
pub(super) struct ReaderParts {
    pub(super) genres: PortalGenres,
    /// The base address of the portal, as the account names it.
    pub(super) server: SourceUrl,
    /// The entry point that has answered.
    pub(super) endpoint: SourceUrl,
}

/// Collects channels, each id once.
pub(super) struct ChannelsReader {
    job: Job,
    parts: Arc<ReaderParts>,
    entries: Spool<StreamProperties>,
    keys: ListKeys,
    findings: PlaylistFindings,
    contents: ContentCounts,
    origin: Option<Distance>,
    seen: HashSet<String>,
    /// Number of elements that were read, usable or not.
    number: u64,
    pub(super) n_entries: u64,
    written: io::Result<()>,
}

impl ChannelsReader {
    pub(super) fn new(job: Job, parts: Arc<ReaderParts>) -> Self {
        Self {
            keys: ListKeys::new(&job.account),
            job,
            parts,
            entries: Spool::new(spool::bytes_max(usable_bytes())),
            findings: PlaylistFindings::default(),
            contents: ContentCounts::default(),
            origin: None,
            seen: HashSet::new(),
            number: 0,
            n_entries: 0,
            written: Ok(()),
        }
    }

    pub(super) fn entries_max(&self) -> u64 {
        self.job.options.limits.entries_max
    }

    pub(super) fn is_full(&self) -> bool {
        self.n_entries >= self.entries_max()
    }

    /// Reads the list of all channels to its end.
    pub(super) fn read(
        &mut self,
        bytes: PlaylistBytes,
    ) -> Result<Result<PortalList, PortalError>, ImportError> {
        let (origin, job) = (bytes.origin(), self.job.clone());
        let (mut parser, mut n_read) = (PortalListParser::default(), 0);
        job.reporter.update(|it| it.phase = RefreshPhase::Parsing);
        bytes.for_each_piece(|piece| {
            job.check_stop()?;
            parser.push(piece, &mut |it| self.element(it));
            n_read += piece.len() as u64;
            job.reporter.update(|it| (it.bytes, it.entries) = (n_read, self.n_entries));
            Ok::<_, ImportError>(())
        })?;
        let end = parser.finish(&mut |it| self.element(it));
        self.origin = origin.get().copied();
        std::mem::replace(&mut self.written, Ok(()))?;
        Ok(end)
    }

    /// Adds the channels of a page.
    pub(super) fn add_page(&mut self, js: &Value) -> Result<(), ImportError> {
        self.job.check_stop()?;
        for item in items_of(js) {
            self.element(Element::Value { key: None, json: item.to_string().as_bytes() });
        }
        std::mem::replace(&mut self.written, Ok(()))?;
        self.job.reporter.update(|it| (it.phase, it.entries) = (RefreshPhase::Parsing, self.n_entries));
        Ok(())
    }

    fn element(&mut self, element: Element<'_>) {
        self.number += 1;
        let read = match element {
            Element::Value { json, .. } => read_channel(json),
            Element::TooLong => Err(ElementProblem::TooLong),
        };
        match read {
            Ok(channel) if self.seen.contains(&channel.id) => {}
            Ok(_) if self.is_full() => self.problem(ElementProblem::TooMany),
            Ok(channel) => {
                self.seen.insert(channel.id.clone());
                let ReaderParts { genres, server, endpoint } = &*self.parts;
                let properties = channel.into_properties(self.job.account.id, server, endpoint, genres);
                self.contents.add(properties.content);
                self.keys.add(&properties);
                self.n_entries += 1;
                if self.written.is_ok() {
                    self.written = self.entries.push(&properties);
                }
            }
            Err(error) => self.problem(error),
        }
    }

    fn problem(&mut self, error: ElementProblem) {
        let line = self.number;
        self.findings.problem(PlaylistProblem {
            line,
            kind: PlaylistProblemKind::PanelElement,
            text: format!("channel {line} was left out: {error}"),
        });
    }

    pub(super) fn into_list(mut self) -> Result<ReadList, ImportError> {
        self.findings.n_entries = self.n_entries;
        Ok(ReadList {
            entries: self.entries,
            keys: self.keys,
            findings: self.findings,
            contents: self.contents,
            origin: self.origin,
        })
    }
}
