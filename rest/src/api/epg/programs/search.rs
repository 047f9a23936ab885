//! `/api/epg/programs/search/`: programmes by their texts, times and channels.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use domain::channel::Channel;
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::guide::programme::ProgrammeId;
use domain::guide::source::GuideSource;
use domain::guide::text_query::{QUERY_CHARS_MAX, TextQuery as ParsedQuery, TextTerm};
use domain::ids::{ChannelId, GuideChannelId, StreamId};
use domain::lineup::{ViewLimits, visible};
use domain::pattern::Pattern;
use domain::streams::{StreamQuery, StreamSnapshot};
use domain::user::UserLevel;
use resource_derive::Query;
use route_frame::call::Call;
use route_frame::value::Time;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use services::guide::{DAY, GuideEntry, GuideOffset, GuideReader, read_guide};
use storage::guide::{Found, GuideField, GuideFile, GuideQuery, SearchLimits, TextQuery, TextTest};
use storage::{Error as StoreError, Table};
use tracing::warn;

use super::results::{FoundProgramme, ResultContext, SearchResult};
use super::shown::{ShownRows, each_once, earlier, merged, with_unused};
use crate::context::RestCall;
use crate::list::{Page, Paging, Search};
use crate::seen::SeenThings;

/// 50 programmes per page by default, at most 500.
pub(super) type Pages = Paging<50, 500>;

/// Programmes after this many cannot be requested.
const RESULTS_MAX: usize = 50_000;
/// Maximum number of programmes of a guide whose texts are read, for phrases and regular expressions.
const CHECKED_MAX: usize = 100_000;
/// Maximum number of found programmes of further guides that are compared with the first guide of their channels.
const FURTHER_MAX: usize = 2_000;
/// The texts that `search` looks at.
const ALL_TEXTS: [GuideField; 4] =
    [GuideField::Title, GuideField::SubTitle, GuideField::Description, GuideField::Category];
/// Maximum time that a search with a regular expression covers, in seconds.
const REGEX_SPAN_MAX: i64 = 7 * DAY;

/// Conditions of a search, all of which must be met.
#[derive(Clone, Debug, Query)]
pub(crate) struct SearchQuery {
    /// Words in titles, subtitles, descriptions or categories. Words match the beginnings of words; phrases in quotes
    /// match as they are; `AND`, `OR` and parentheses combine them.
    #[field(chars_max = QUERY_CHARS_MAX, example = "news AND (late OR \"world news\")")]
    search: Option<String>,
    /// The same for titles.
    #[field(chars_max = QUERY_CHARS_MAX, example = "news")]
    title: Option<String>,
    /// If true, `title` is a regular expression. Needs a span of time of at most 7 days.
    title_regex: Option<bool>,
    /// If true, words of `title` match whole words only.
    title_whole_words: Option<bool>,
    /// The same as `search` for descriptions.
    #[field(chars_max = QUERY_CHARS_MAX)]
    description: Option<String>,
    /// If true, `description` is a regular expression. Needs a span of time of at most 7 days.
    description_regex: Option<bool>,
    /// If true, words of `description` match whole words only.
    description_whole_words: Option<bool>,
    /// The same as `search` for categories.
    #[field(chars_max = QUERY_CHARS_MAX, example = "Sports")]
    category: Option<String>,
    /// A time at which the programme runs.
    airing_at: Option<Time>,
    /// Earliest start.
    start_after: Option<Time>,
    /// Latest start.
    start_before: Option<Time>,
    /// Earliest end.
    end_after: Option<Time>,
    /// Latest end.
    end_before: Option<Time>,
    /// Id of the channel in its guide source. In another case, if no guide channel has it exactly.
    #[field(example = "news.example")]
    tvg_id: Option<String>,
    /// Part of the name of a channel that shows the programme.
    channel: Option<Search>,
    /// Id of a channel that shows the programme.
    channel_id: Option<ChannelId>,
    /// Part of the name of a stream of a channel that shows the programme.
    stream: Option<String>,
    /// Part of the name of the group of a channel that shows the programme.
    group: Option<Search>,
    /// Id or name of a guide source.
    epg_source: Option<String>,
    /// Names of the fields of the answer, separated by commas; all by default.
    #[field(items_max = 50, example = "[\"title\", \"start_time\"]")]
    fields: Option<Vec<String>>,
}

pub(super) async fn search(
    call: Call,
    (query, paging): (SearchQuery, Pages),
) -> Result<Page<SearchResult>, Refusal> {
    let fields = query.fields.clone();
    let context = ResultContext::new(&call, fields)?;
    let (count, found) = find(&call, query, &paging).await?;
    let results = read_guide(move || Ok(context.results(&found))).await?;
    paging.envelope(&call, count, results)
}

/// Returns the number of all matching programmes, and those on the page, by their start.
pub(super) async fn find(
    call: &Call,
    query: SearchQuery,
    paging: &Pages,
) -> Result<(usize, Vec<FoundProgramme>), Refusal> {
    let (offset, limit) = paging.window();
    let n_max = offset.saturating_add(limit);
    if n_max > RESULTS_MAX {
        let message = format!("Only the first {RESULTS_MAX} results can be requested. Narrow the search.");
        return Err(Refusal::field("page", message));
    }
    let text = query.text()?;
    let scope = SearchScope::load(call)?;
    read_guide(move || {
        let shown = scope.shown(&query);
        let limits = SearchLimits { n_max, checked_max: CHECKED_MAX };
        let (mut count, mut lists) = (0, Vec::new());
        let sources = scope.sources(query.epg_source.as_deref());
        let searches = sources.iter().flat_map(|source| shown.iter().map(move |row| (source, row)));
        for (source, ((minutes, is_further), channels)) in searches {
            let Some(file) = scope.guides.file(source) else { continue };
            let offset = GuideOffset::new(source, *minutes);
            let wanted = GuideQuery {
                text: text.clone(),
                channels: channels.clone(),
                starts: earlier(query.starts(), offset),
                stops: earlier(query.stops(), offset),
            };
            let Some(found) = search_file(&file, &wanted, &limits, &source.name)? else { continue };
            let Found { mut ids, count: n_found, .. } = found;
            let n_before = ids.len();
            if *is_further {
                ids.truncate(FURTHER_MAX);
                ids.retain(|id| scope.is_shown(*id, *minutes));
            }
            // Those that no channel has room for do not count, as far as they are known.
            count += usize::try_from(n_found).unwrap_or(usize::MAX).saturating_sub(n_before - ids.len());
            lists.push((offset, ids));
        }
        let on_page = merged(lists, n_max).into_iter().skip(offset);
        let found = on_page.filter_map(|(id, minutes)| {
            let (guide_channel, entry) = scope.stored(id, minutes)?;
            Some(FoundProgramme { guide_channel, entry, minutes })
        });
        Ok((count, found.collect()))
    })
    .await
}

/// Searches one guide. `None` if it cannot be read.
fn search_file(
    file: &GuideFile,
    wanted: &GuideQuery,
    limits: &SearchLimits,
    name: &str,
) -> Result<Option<Found>, Refusal> {
    match file.search(wanted, limits) {
        Ok(found) if found.is_too_wide => {
            let message = format!(
                "More than {CHECKED_MAX} programmes would have to be read. Choose a shorter time, or words without quotes."
            );
            Err(Refusal::field("search", message))
        }
        Ok(found) => Ok(Some(found)),
        Err(StoreError::TooLarge { .. }) => Err(Refusal::field("search", "The search has too many words.")),
        Err(error) => {
            warn!("failed to search the guide \"{name}\": {error}");
            Ok(None)
        }
    }
}

/// Everything that decides which guide channels a search looks at, at one moment.
struct SearchScope {
    guides: GuideReader,
    limits: ViewLimits,
    seen: SeenThings,
    /// Whether the caller may search by streams.
    sees_streams: bool,
    groups: Arc<Table<Group>>,
    streams: Arc<StreamSnapshot>,
}

impl SearchScope {
    fn load(call: &Call) -> Result<Self, Refusal> {
        Ok(Self {
            guides: call.rest().guide.guides.reader(),
            limits: call.view_limits(),
            seen: SeenThings::new(call),
            sees_streams: call.identity()?.may(UserLevel::Standard),
            groups: call.rest().models.groups.load(),
            streams: call.rest().models.streams.load(),
        })
    }

    /// Returns the active sources with this id or name; all without one.
    fn sources(&self, wanted: Option<&str>) -> Vec<Arc<GuideSource>> {
        let is_wanted = |source: &GuideSource| {
            wanted.is_none_or(|it| source.name.eq_ignore_ascii_case(it) || source.id.to_string() == it)
        };
        self.guides.sources.iter().filter(|it| it.is_active && is_wanted(it)).cloned().collect()
    }

    /// Returns the guide channels that a search is limited to, by the minutes by which channels show their programmes later;
    /// `None` for all. A guide channel that several channels show at several times is in several rows.
    fn shown(&self, query: &SearchQuery) -> ShownRows {
        let guides = &self.guides;
        let of_key = query.tvg_id.as_ref().map(|key| {
            let found = guides.order.iter().filter_map(|source| guides.index.by_key(source, key));
            found.map(|it| it.id).collect::<BTreeSet<_>>()
        });
        let names_channels = query.channel.is_some()
            || query.channel_id.is_some()
            || query.stream.is_some()
            || query.group.is_some();
        let links = guides.links();
        if self.seen.sees_unused() && !names_channels {
            return with_unused(guides, &links, of_key, &self.seen);
        }
        let streams = query.stream.as_ref().map(|it| self.streams_named(it, links.all_channels()));
        let is_wanted = |channel: &Channel| {
            let group = || channel.group.and_then(|it| self.groups.get(it.0));
            visible(&self.limits, channel)
                && query.channel_id.is_none_or(|it| channel.id == it)
                && query.channel.as_ref().is_none_or(|it| it.matches(&channel.name))
                && query.group.as_ref().is_none_or(|it| group().is_some_and(|group| it.matches(&group.name)))
                && streams.as_ref().is_none_or(|it| channel.streams.iter().any(|id| it.contains(id)))
        };
        // Without a channel, nothing is found.
        let mut rows = ShownRows::from([((0, false), Some(BTreeSet::new()))]);
        let is_of_key = |it: &GuideChannelId| of_key.as_ref().is_none_or(|ids| ids.contains(it));
        for id in links.guide_channels().filter(is_of_key) {
            for shown in links.shown_by(id).filter(|it| is_wanted(it.channel)) {
                let row = rows.entry((shown.minutes, shown.is_further)).or_default();
                row.get_or_insert_default().insert(id);
            }
        }
        each_once(rows)
    }

    /// Returns a programme as visible channels show it. Blocks.
    fn stored(&self, id: ProgrammeId, minutes: i16) -> Option<(Arc<GuideChannel>, GuideEntry)> {
        self.guides.stored(id, minutes, &|it| visible(&self.limits, it))
    }

    /// Returns whether a visible channel shows a programme of one of its further guides. Blocks.
    fn is_shown(&self, id: ProgrammeId, minutes: i16) -> bool {
        let Some((guide_channel, entry)) = self.stored(id, minutes) else { return false };
        let links = self.guides.links();
        let mut shown = links.shown_by(guide_channel.id).filter(|it| it.is_further && it.minutes == minutes);
        shown.any(|it| visible(&self.limits, it.channel) && self.guides.shows(&it, &entry))
    }

    /// Returns the streams of these channels whose names contain a text. Users of level 0 see none.
    fn streams_named<'a>(
        &self,
        name: &str,
        channels: impl Iterator<Item = &'a Arc<Channel>>,
    ) -> HashSet<StreamId> {
        if !self.sees_streams {
            return HashSet::new();
        }
        let only = channels.flat_map(|it| it.streams.iter().copied()).collect();
        let query = StreamQuery { name: Some(name.to_owned()), only: Some(only), ..StreamQuery::default() };
        self.streams.ids(&query).into_iter().collect()
    }
}

/// The texts that a condition applies to, and how.
struct TextCondition<'a> {
    field: &'static str,
    text: &'a Option<String>,
    is_regex: Option<bool>,
    is_whole: Option<bool>,
    fields: &'static [GuideField],
}

impl SearchQuery {
    /// Returns the condition for texts.
    fn text(&self) -> Result<Option<TextQuery>, Refusal> {
        let condition = |field, text, is_regex, is_whole, fields| TextCondition {
            field,
            text,
            is_regex,
            is_whole,
            fields,
        };
        let conditions = [
            condition("search", &self.search, None, None, &ALL_TEXTS[..]),
            condition("title", &self.title, self.title_regex, self.title_whole_words, &[GuideField::Title]),
            condition(
                "description",
                &self.description,
                self.description_regex,
                self.description_whole_words,
                &[GuideField::Description],
            ),
            condition("category", &self.category, None, None, &[GuideField::Category]),
        ];
        let (mut all, mut errors) = (Vec::new(), FieldErrors::default());
        for condition in conditions {
            let Some(text) = condition.text else { continue };
            match condition.query(text, self.has_short_span()) {
                Ok(query) => all.push(query),
                Err(message) => errors.add(condition.field, message),
            }
        }
        errors.or(())?;
        Ok((!all.is_empty()).then_some(TextQuery::All(all)))
    }

    /// Returns whether the times limit the search to a few days.
    fn has_short_span(&self) -> bool {
        let (starts, stops) = (self.starts(), self.stops());
        // A programme that ends after the first moment can have started before, but hardly a day.
        let from = starts.start.max(stops.start.saturating_sub(DAY));
        let until = starts.end.min(stops.end);
        until.saturating_sub(from) <= REGEX_SPAN_MAX + DAY
    }

    /// Returns the allowed starts, in seconds since 1970.
    fn starts(&self) -> Range<i64> {
        let airing = self.airing_at.map(|it| seconds(it).saturating_add(1));
        let before = self.start_before.map(|it| seconds(it).saturating_add(1));
        let after = self.start_after.map_or(i64::MIN, seconds);
        after..airing.unwrap_or(i64::MAX).min(before.unwrap_or(i64::MAX))
    }

    /// Returns the allowed ends, in seconds since 1970.
    fn stops(&self) -> Range<i64> {
        let airing = self.airing_at.map_or(i64::MIN, |it| seconds(it).saturating_add(1));
        let after = self.end_after.map_or(i64::MIN, seconds);
        let before = self.end_before.map_or(i64::MAX, |it| seconds(it).saturating_add(1));
        airing.max(after)..before
    }
}

fn seconds(time: Time) -> i64 {
    time.0.div_euclid(1000)
}

impl TextCondition<'_> {
    /// Returns the condition for guide files, or the reason why it is invalid.
    fn query(&self, text: &str, has_short_span: bool) -> Result<TextQuery, String> {
        if self.is_regex != Some(true) {
            let parsed = ParsedQuery::parse(text).map_err(|it| format!("{it}."))?;
            return Ok(self.text_query(&parsed));
        }
        if !has_short_span {
            return Err(
                "A regular expression needs a span of at most 7 days: send airing_at, or start_after and \
                        start_before. Words without a regular expression search everything."
                    .to_owned(),
            );
        }
        let pattern =
            Pattern::new(&format!("(?i){text}"), "").map_err(|it| format!("Not a valid pattern: {it}."))?;
        let test: TextTest = Arc::new(move |text| pattern.is_match(text));
        Ok(self.in_fields(&|field| TextQuery::Matches { field, test: Arc::clone(&test) }))
    }

    fn text_query(&self, parsed: &ParsedQuery) -> TextQuery {
        match parsed {
            ParsedQuery::Term(term) => self.term_query(term),
            ParsedQuery::All(parts) => TextQuery::All(parts.iter().map(|it| self.text_query(it)).collect()),
            ParsedQuery::Any(parts) => TextQuery::Any(parts.iter().map(|it| self.text_query(it)).collect()),
        }
    }

    /// A phrase is found by its words, and then compared.
    fn term_query(&self, term: &TextTerm) -> TextQuery {
        let whole = self.is_whole == Some(true);
        self.in_fields(&|field| {
            let words = TextQuery::Words { field, text: term.text.clone(), whole };
            match term.is_phrase {
                true => TextQuery::All(vec![words, TextQuery::Contains { field, text: term.text.clone() }]),
                false => words,
            }
        })
    }

    /// Returns the condition that one of the fields meets this one.
    fn in_fields(&self, of_field: &dyn Fn(GuideField) -> TextQuery) -> TextQuery {
        match self.fields {
            [only] => of_field(*only),
            several => TextQuery::Any(several.iter().map(|it| of_field(*it)).collect()),
        }
    }
}
