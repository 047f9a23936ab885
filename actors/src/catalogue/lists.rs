//! Fetches the lists of categories, films and series of a panel, and reads them while they arrive.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;

use domain::account::Account;
use domain::egress::Reach;
use domain::ids::VodCategoryId;
use domain::panel::vod::{SkippedElements, VodListParser, read_movie, read_series};
use domain::panel::{
    CATEGORIES_MAX, Element, ElementParser, ElementProblem, PanelCategory, PanelLogin, VodQuestion,
    read_category,
};
use domain::vod::category::UNCATEGORISED;
use domain::vod::{AccountCategory, FoundCategory, FoundTitle, TitleKind};
use storage::FoundTitles;
use tokio_util::sync::CancellationToken;

use super::error::{VodError, check_end, words_of};
use crate::fetch::Fetch;
use crate::memory::usable_bytes;
use crate::playlist::{self, PlaylistBytes, PlaylistSource};
use crate::refresh::spool::{self, Spool};

/// Maximum number of films, and of series, that are read of one account.
pub(super) const TITLES_MAX: usize = 1_000_000;

/// Maximum number of categories whose titles are asked for one by one. For more, one question for all titles is sent,
/// and those of other categories are left out.
pub(super) const CATEGORY_QUESTIONS_MAX: usize = 3;

/// Titles that were read to their end.
pub(super) struct ReadTitles {
    pub(super) titles: Spool<FoundTitle>,
    /// Number of usable titles, also of categories that are not enabled.
    pub(super) n_listed: u64,
    pub(super) skipped: SkippedElements,
}

impl FoundTitles for ReadTitles {
    fn for_each(&self, visit: &mut dyn FnMut(FoundTitle) -> ControlFlow<()>) -> io::Result<()> {
        // An error stops the iteration; this one only means that the visitor has enough.
        let mut has_enough = false;
        let read = self.titles.for_each(|title| {
            has_enough = visit(title).is_break();
            if has_enough { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
        });
        if has_enough { Ok(()) } else { read }
    }
}

/// The panel of an account, and what is needed to ask it.
#[derive(Clone)]
pub(super) struct Panel<'a> {
    pub(super) fetch: &'a Fetch,
    pub(super) account: &'a Account,
    pub(super) login: &'a PanelLogin,
    pub(super) stop: &'a CancellationToken,
}

impl Panel<'_> {
    /// Asks a question whose answer is read on a thread that may block. Waits for its turn first.
    async fn ask<R: Send + 'static>(
        &self,
        question: VodQuestion<'_>,
        read: impl FnOnce(PlaylistBytes) -> Result<R, VodError> + Send + 'static,
    ) -> Result<R, VodError> {
        let turn = self.stop.run_until_cancelled(self.fetch.turn(self.account.id)).await;
        let _turn = turn.ok_or(VodError::Stopped)?;
        let reach = Reach::typed(self.account.allowed_networks);
        let source = PlaylistSource::Url(self.login.vod_url(question), self.account.headers.clone(), reach);
        let (fed, read) = playlist::feed(self.fetch, source, self.stop, read).await;
        if self.stop.is_cancelled() {
            return Err(VodError::Stopped);
        }
        fed.map_err(VodError::Fetch)?;
        read.unwrap_or(Err(VodError::Panicked))
    }

    /// Returns the categories of a kind, with the one of titles without a category.
    pub(super) async fn categories(&self, kind: TitleKind) -> Result<ListedCategories, VodError> {
        let question = match kind {
            TitleKind::Movie => VodQuestion::MovieCategories,
            TitleKind::Series => VodQuestion::SeriesCategories,
        };
        let stop = self.stop.clone();
        self.ask(question, move |bytes| read_categories(kind, bytes, &stop)).await
    }

    /// Returns the titles of these categories of the account, all of them if the list of a single one is not asked for.
    pub(super) async fn titles(
        &self,
        kind: TitleKind,
        single: Option<&str>,
        categories: &Categories,
        into: ReadTitles,
        on_title: impl FnMut(u64) + Send + 'static,
    ) -> Result<ReadTitles, VodError> {
        let question = match kind {
            TitleKind::Movie => VodQuestion::Movies { category: single },
            TitleKind::Series => VodQuestion::Series { category: single },
        };
        let categories = Categories { asked: single.map(str::to_owned), ..categories.clone() };
        let stop = self.stop.clone();
        self.ask(question, move |bytes| read_titles(kind, bytes, &categories, into, on_title, &stop)).await
    }
}

impl ReadTitles {
    pub(super) fn new() -> Self {
        let titles = Spool::new(spool::bytes_max(usable_bytes()));
        Self { titles, n_listed: 0, skipped: SkippedElements::default() }
    }
}

/// The answer of a panel to the question for its categories.
pub(super) struct ListedCategories {
    pub(super) found: Vec<FoundCategory>,
    /// The ids of those that the panel marks as adult content.
    pub(super) adult: HashSet<String>,
    pub(super) skipped: SkippedElements,
}

/// The categories of an account by the ids of its panel.
#[derive(Clone, Default)]
pub(super) struct Categories {
    enabled: HashMap<String, VodCategoryId>,
    known: HashSet<String>,
    /// Those that are marked as adult content.
    adult: HashSet<String>,
    /// The category whose titles are asked for.
    asked: Option<String>,
}

impl Categories {
    pub(super) fn new(links: &[AccountCategory], adult: HashSet<String>) -> Self {
        let ids = |it: &AccountCategory| it.provider_ids.clone();
        let enabled = links.iter().filter(|it| it.enabled);
        Self {
            enabled: enabled.flat_map(|it| ids(it).into_iter().map(|id| (id, it.category))).collect(),
            known: links.iter().flat_map(ids).collect(),
            adult,
            asked: None,
        }
    }

    /// Returns the category under which a title is imported: the first one of its own that is enabled. A title without
    /// one that the panel lists belongs to the category of such titles.
    fn category(&self, own: &[String]) -> Option<VodCategoryId> {
        let of = |it: &String| self.enabled.get(it).copied();
        if let Some(found) = own.iter().find_map(of) {
            return Some(found);
        }
        if let Some(asked) = self.asked.as_ref().filter(|_| own.is_empty()) {
            return of(asked);
        }
        let is_without = own.iter().all(|it| !self.known.contains(it));
        self.enabled.get("").copied().filter(|_| is_without)
    }

    /// Returns whether one of the categories of a title is marked as adult content.
    fn is_adult(&self, own: &[String]) -> bool {
        let asked = self.asked.as_ref().filter(|_| own.is_empty());
        own.iter().chain(asked).any(|it| self.adult.contains(it))
    }
}

fn read_categories(
    kind: TitleKind,
    bytes: PlaylistBytes,
    stop: &CancellationToken,
) -> Result<ListedCategories, VodError> {
    let (_, what) = words_of(kind);
    let (mut found, mut adult) = (Vec::new(), HashSet::new());
    let mut skipped = SkippedElements::default();
    let mut is_refusal = false;
    let end = read_elements(bytes, stop, |element| {
        let read = match element {
            Element::Value { key: Some(b"user_info"), .. } => {
                is_refusal = true;
                return Ok(());
            }
            Element::Value { json, .. } => read_category(json),
            Element::TooLong => Err(ElementProblem::TooLong),
        };
        match read {
            Ok(_) if found.len() >= CATEGORIES_MAX => skipped.add(ElementProblem::TooMany),
            Ok((provider_id, PanelCategory { name, is_adult })) => {
                if is_adult {
                    adult.insert(provider_id.clone());
                }
                found.push(FoundCategory { kind, provider_id, name });
            }
            Err(problem) => skipped.add(problem),
        }
        Ok(())
    })?;
    if is_refusal {
        return Err(VodError::Refused { what });
    }
    check_end(end, what)?;
    let name = UNCATEGORISED.to_owned();
    found.push(FoundCategory { kind, provider_id: String::new(), name });
    Ok(ListedCategories { found, adult, skipped })
}

fn read_titles(
    kind: TitleKind,
    bytes: PlaylistBytes,
    categories: &Categories,
    mut into: ReadTitles,
    mut on_title: impl FnMut(u64),
    stop: &CancellationToken,
) -> Result<ReadTitles, VodError> {
    let (what, _) = words_of(kind);
    let mut is_refusal = false;
    let end = read_elements(bytes, stop, |element| {
        let json = match element {
            Element::Value { key: Some(b"user_info"), .. } => {
                is_refusal = true;
                return Ok(());
            }
            Element::Value { json, .. } => json,
            Element::TooLong => {
                into.skipped.add(ElementProblem::TooLong);
                return Ok(());
            }
        };
        let read = match kind {
            TitleKind::Movie => read_movie(json).map(|mut it| {
                let category = categories.category(&it.categories);
                it.facts.is_adult |= categories.is_adult(&it.categories);
                category.map(|category| it.into_found(category))
            }),
            TitleKind::Series => read_series(json).map(|mut it| {
                let category = categories.category(&it.categories);
                it.facts.is_adult |= categories.is_adult(&it.categories);
                category.map(|category| it.into_found(category))
            }),
        };
        match read {
            Ok(_) if into.titles.len() >= TITLES_MAX => into.skipped.add(ElementProblem::TooMany),
            Ok(title) => {
                into.n_listed += 1;
                if let Some(title) = title {
                    into.titles.push(&title)?;
                }
                if into.n_listed.is_multiple_of(REPORT_PERIOD) {
                    on_title(into.n_listed);
                }
            }
            Err(problem) => into.skipped.add(problem),
        }
        Ok(())
    })?;
    if is_refusal {
        return Err(VodError::Refused { what });
    }
    check_end(end, what)?;
    on_title(into.n_listed);
    Ok(into)
}

/// Number of titles between two reports of the progress.
const REPORT_PERIOD: u64 = 1_000;

fn read_elements(
    bytes: PlaylistBytes,
    stop: &CancellationToken,
    mut on_element: impl FnMut(Element<'_>) -> io::Result<()>,
) -> Result<domain::panel::ListEnd, VodError> {
    let mut parser = VodListParser::new(ElementParser::ELEMENT_BYTES_MAX);
    let mut failed = Ok(());
    bytes.for_each_piece(|piece| {
        parser.push(piece, &mut |element| {
            if failed.is_ok() {
                failed = on_element(element);
            }
        });
        if stop.is_cancelled() {
            return Err(VodError::Stopped);
        }
        std::mem::replace(&mut failed, Ok(())).map_err(VodError::Unread)
    })?;
    Ok(parser.finish())
}

#[cfg(test)]
mod tests {
    use domain::ids::AccountId;

    use super::*;

    fn link(id: u32, provider_ids: &[&str], enabled: bool) -> AccountCategory {
        AccountCategory {
            id,
            account: AccountId(2),
            category: VodCategoryId(id),
            kind: TitleKind::Movie,
            provider_ids: provider_ids.iter().map(|it| (*it).to_owned()).collect(),
            enabled,
            custom_properties: serde_json::Map::new(),
            last_seen: None,
        }
    }

    #[test]
    fn a_title_is_imported_under_its_first_enabled_category() {
        let links = [link(1, &["21", "23"], true), link(2, &["22"], false), link(3, &[""], true)];
        let own = |ids: &[&str]| ids.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let all = Categories::new(&links, HashSet::from(["23".to_owned()]));
        for (ids, expected) in [
            (&["21"][..], Some(1)),
            (&["22"], None),
            (&["22", "23"], Some(1)),
            (&[], Some(3)),
            (&["99"], Some(3)),
            (&["99", "22"], None),
        ] {
            assert_eq!(all.category(&own(ids)).map(|it| it.0), expected, "{ids:?}");
            assert_eq!(all.is_adult(&own(ids)), ids.contains(&"23"), "{ids:?}");
        }
        let single = Categories { asked: Some("23".to_owned()), ..all };
        assert_eq!(
            single.category(&[]).map(|it| it.0),
            Some(1),
            "a panel that names no category in such a list"
        );
        assert_eq!(single.category(&own(&["22"])), None, "a panel that ignores the question for one");
        assert!(single.is_adult(&[]) && !single.is_adult(&own(&["22"])));
        let closed = Categories::new(&links[..2], HashSet::new());
        assert_eq!(closed.category(&own(&["99"])), None);
    }
}
