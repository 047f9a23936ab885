//! Films and episodes in playlists, read from the store range by range while the playlist is sent.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::playlist::write::{OutputEntry, write_entry, write_plain_entry};
use domain::vod::{Title, TitleKind, VodCategory};
use route_frame::call::Call;
use services::addresses::{StreamAddresses, episode_image_address, image_address};
use services::titles::SeenTitles;
use storage::{Models, Table};
use tracing::error;

use crate::context::PlayerCall;

/// The titles that a playlist still has to list.
pub(super) struct TitleEntries {
    models: Models,
    kinds: &'static [TitleKind],
    seen: SeenTitles,
    categories: Arc<Table<VodCategory>>,
    /// Ranges of titles that were not read yet, the next one first.
    ranges: VecDeque<u64>,
    /// Titles of the range that was read last, the next one first.
    titles: VecDeque<Title>,
}

impl TitleEntries {
    pub(super) fn new(call: &Call, kinds: &'static [TitleKind]) -> Self {
        let models = call.player().models.clone();
        let ranges = match kinds {
            [] => VecDeque::new(),
            _ => models.store.collection::<Title>().owners().into(),
        };
        Self {
            kinds,
            seen: call.seen_titles(),
            categories: models.vod_categories.load(),
            models,
            ranges,
            titles: VecDeque::new(),
        }
    }

    pub(super) fn has_more(&self) -> bool {
        !self.titles.is_empty() || !self.ranges.is_empty()
    }

    /// Writes the entries of the next title, and returns whether another one may follow. Reads the store, so it blocks.
    pub(super) fn write_next(
        &mut self,
        out: &mut String,
        addresses: &StreamAddresses,
        origin: &str,
        is_plain: bool,
    ) -> bool {
        if self.titles.is_empty() {
            self.read_range();
        }
        if let Some(title) = self.titles.pop_front() {
            match title.id.kind() {
                TitleKind::Movie => self.write_film(out, addresses, origin, is_plain, &title),
                TitleKind::Series => self.write_series(out, addresses, origin, is_plain, &title),
            }
        }
        self.has_more()
    }

    /// Reads the titles of the next range.
    fn read_range(&mut self) {
        let Some(range) = self.ranges.pop_front() else { return };
        let (seen, kinds, titles) = (&self.seen, self.kinds, &mut self.titles);
        let read = self.models.store.collection::<Title>().while_of(range, |title| {
            if kinds.contains(&title.id.kind()) && seen.shows(&title) {
                titles.push_back(title);
            }
            true
        });
        // The rest of the playlist is of use without it.
        if let Err(failure) = read {
            error!("failed to read titles for a playlist: {failure}");
        }
    }

    fn write_film(
        &self,
        out: &mut String,
        addresses: &StreamAddresses,
        origin: &str,
        is_plain: bool,
        film: &Title,
    ) {
        let Some(first) = self.seen.relations(film).next() else { return };
        let name = with_year(film);
        let logo = film.logo().map(|_| image_address(origin, film)).unwrap_or_default();
        let group = self.categories.get(first.category.0).map(|it| it.name.as_str()).unwrap_or_default();
        write(out, is_plain, &name, &addresses.film(film, &first.extension), &logo, group);
    }

    fn write_series(
        &self,
        out: &mut String,
        addresses: &StreamAddresses,
        origin: &str,
        is_plain: bool,
        series: &Title,
    ) {
        let episodes = self.models.vod.episodes_of(series.id).unwrap_or_else(|failure| {
            error!("failed to read episodes for a playlist: {failure}");
            Vec::new()
        });
        let cover = series.logo().map(|_| image_address(origin, series)).unwrap_or_default();
        for episode in &episodes {
            let offered = |relation| self.seen.relations(series).find(|it| it.id == relation);
            let found = episode.offers.iter().find_map(|it| Some((it, offered(it.relation)?)));
            let Some((offer, relation)) = found else { continue };
            // Players find series by this form of the name.
            let name = format!("{} S{:02}E{:02}", series.name(), episode.season, episode.number);
            let picture = episode.first(|it| it.logo.as_deref());
            let logo = picture.map(|it| episode_image_address(origin, episode, it));
            let group = self.categories.get(relation.category.0);
            let group = group.map(|it| it.name.as_str()).unwrap_or_default();
            let url = addresses.episode(episode, &offer.extension);
            write(out, is_plain, &name, &url, logo.as_deref().unwrap_or(&cover), group);
        }
    }
}

fn with_year(film: &Title) -> String {
    match film.year().map(|it| format!("({it})")) {
        Some(year) if !film.name().contains(&year) => format!("{} {year}", film.name()),
        _ => film.name().to_owned(),
    }
}

fn write(out: &mut String, is_plain: bool, name: &str, url: &str, logo: &str, group: &str) {
    let entry = OutputEntry { name, url, tvg_logo: logo, group, ..OutputEntry::default() };
    match is_plain {
        true => write_plain_entry(out, &entry),
        false => write_entry(out, &entry),
    }
}
