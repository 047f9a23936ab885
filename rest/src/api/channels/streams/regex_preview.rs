//! `/api/channels/streams/regex-preview/`: shows the effect of patterns on the names of streams.

use std::sync::Arc;

use domain::ids::AccountId;
use domain::pattern::{PATTERN_BYTES_MAX, Pattern};
use resource_derive::{Query, View};
use route_frame::call::Call;
use route_frame::filter::read_filter;
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use super::filters::{StreamFilters, index};
use super::view::{blocking, read};
use crate::api::channels::pattern::compile;
use crate::api::channels::values::Untrimmed;
use crate::context::RestCall;

/// Maximum number of streams that are compared with the patterns.
const SCANNED_MAX: usize = 5_000;
/// Default number of examples.
const EXAMPLES: usize = 10;
/// Maximum number of examples.
const EXAMPLES_MAX: i64 = 1_000;

/// Patterns, and the group whose streams they are applied to.
#[derive(Debug, Query)]
pub(crate) struct RegexPreviewQuery {
    /// Name or id of the group.
    #[field(example = "News")]
    channel_group: String,
    /// Id of the playlist account; all accounts by default.
    m3u_account_id: Option<AccountId>,
    /// Regular expression of the names to change.
    #[field(chars_max = PATTERN_BYTES_MAX)]
    find: Option<Untrimmed>,
    /// Replacement of each match.
    #[field(blank, chars_max = PATTERN_BYTES_MAX)]
    replace: Option<Untrimmed>,
    /// Regular expression of the names to select.
    #[field(chars_max = PATTERN_BYTES_MAX)]
    r#match: Option<Untrimmed>,
    /// Regular expression of the names to leave out.
    #[field(chars_max = PATTERN_BYTES_MAX)]
    exclude: Option<Untrimmed>,
    /// Number of examples for each pattern.
    #[field(at_least = 1, at_most = EXAMPLES_MAX)]
    limit: Option<usize>,
}

/// The effect of patterns. The fields of a pattern that was not sent are `null`.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RegexPreviewView {
    /// Number of streams in the group.
    #[field(example = "120")]
    total_in_group: usize,
    /// Number of streams that were compared with the patterns.
    #[field(example = "120")]
    total_scanned: usize,
    /// Whether the group has more streams than are compared.
    scan_limit_hit: bool,
    /// Names that `find` and `replace` change.
    find_matches: Option<Vec<RenamedStreamView>>,
    /// Number of these names.
    find_match_count: Option<usize>,
    /// Reason why `find` or `replace` is invalid.
    find_error: Option<String>,
    /// Names that `match` selects.
    filter_matches: Option<Vec<String>>,
    /// Number of these names.
    filter_match_count: Option<usize>,
    /// Reason why `match` is invalid.
    match_error: Option<String>,
    /// Names that `exclude` leaves out.
    exclude_matches: Option<Vec<String>>,
    /// Number of these names.
    exclude_match_count: Option<usize>,
    /// Reason why `exclude` is invalid.
    exclude_error: Option<String>,
}

/// A name before and after the replacement.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "RenamedStream")]
pub(crate) struct RenamedStreamView {
    /// Name of the stream.
    #[field(example = "UK: News")]
    before: String,
    /// Name after the replacement.
    #[field(example = "News")]
    after: String,
}

/// Examples of names with their total number, or the reason why the pattern is invalid.
type Found<T> = Option<Result<(Vec<T>, usize), String>>;

pub(super) async fn preview(call: Call, query: RegexPreviewQuery) -> Result<RegexPreviewView, Refusal> {
    let mut filter = Map::from_iter([("channel_group".to_owned(), Value::from(query.channel_group))]);
    if let Some(account) = query.m3u_account_id {
        filter.insert("m3u_account".to_owned(), account.0.into());
    }
    let wanted = read_filter::<StreamFilters>(&filter)?.wanted(&call)?;
    let limit = query.limit.unwrap_or(EXAMPLES);
    let replace = query.replace.map(|it| it.0).unwrap_or_default();
    let compiled = |find: Option<Untrimmed>, replace: &str| {
        find.map(|it| compile(&it.0, replace, "").map_err(FieldErrors::first_message))
    };
    let find = compiled(query.find, &replace);
    let (select, exclude) = (compiled(query.r#match, ""), compiled(query.exclude, ""));
    let (index, context) = (index(call.rest()).await?, Arc::clone(call.rest()));
    blocking(move || {
        let page = wanted.find(&index, 0, SCANNED_MAX);
        let streams = read(&context, &page.ids)?;
        let names: Vec<&str> = streams.iter().map(|it| it.name()).collect();
        let (find_matches, find_match_count, find_error) = parts(find.map(|it| {
            it.map(|pattern| examples(names.iter().filter_map(|name| renamed(&pattern, name)), limit))
        }));
        let matching_names = |pattern: Option<Result<Pattern, String>>| -> Found<String> {
            pattern.map(|it| {
                it.map(|pattern| {
                    let matches = names.iter().filter(|it| pattern.is_match(it));
                    examples(matches.map(|it| (*it).to_owned()), limit)
                })
            })
        };
        let (filter_matches, filter_match_count, match_error) = parts(matching_names(select));
        let (exclude_matches, exclude_match_count, exclude_error) = parts(matching_names(exclude));
        Ok(RegexPreviewView {
            total_in_group: page.count,
            total_scanned: names.len(),
            scan_limit_hit: page.count > SCANNED_MAX,
            find_matches,
            find_match_count,
            find_error,
            filter_matches,
            filter_match_count,
            match_error,
            exclude_matches,
            exclude_match_count,
            exclude_error,
        })
    })
    .await
}

fn renamed(pattern: &Pattern, name: &str) -> Option<RenamedStreamView> {
    let after = pattern.apply(name);
    (after != name).then(|| RenamedStreamView { before: name.to_owned(), after: after.into_owned() })
}

/// Collects the first items, and counts all.
fn examples<T>(items: impl Iterator<Item = T>, limit: usize) -> (Vec<T>, usize) {
    let (mut first, mut n) = (Vec::new(), 0);
    for item in items {
        n += 1;
        if first.len() < limit {
            first.push(item);
        }
    }
    (first, n)
}

type Parts<T> = (Option<Vec<T>>, Option<usize>, Option<String>);

fn parts<T>(found: Found<T>) -> Parts<T> {
    match found {
        None => (None, None, None),
        Some(Ok((examples, n))) => (Some(examples), Some(n), None),
        Some(Err(error)) => (None, None, Some(error)),
    }
}
