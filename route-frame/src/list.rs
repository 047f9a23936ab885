//! The one rule for the form of lists: an envelope, or an array if no page was requested and a known client reads one.

use domain::clients::{ARRAY_LISTS, LENIENT_ORDERINGS, reads_array};
use domain::query::Query;

use super::call::Call;
use super::field::{Field, Kind};
use super::route::Route;

/// Returns whether the caller gets the list of a request as an array. `is_paged`: it asks for a page.
pub fn is_array(call: &Call, is_paged: bool) -> bool {
    // Plugins send no user agent and read envelopes.
    !is_paged && call.plugin.is_none() && reads_array(call.pattern, &call.caller.agent)
}

/// Returns the description of the answer of a list.
pub(super) fn description(path: &str) -> &'static str {
    match ARRAY_LISTS.iter().any(|it| it.path == path && it.without_agent) {
        true => {
            "A page of the list. Programs that send no `User-Agent` and request no page get the array of all results."
        }
        false => "A page of the list.",
    }
}

/// Parameter of the order of a list.
pub(super) const ORDERING: &str = "ordering";
/// Parameter with which a client asks for a refusal of what would only be named in a warning.
pub(super) const STRICT: &str = "strict";

/// Returns the order that a request asks for, if the list does not have it and its clients do not expect a refusal. With
/// `strict=true` it is refused.
pub(super) fn unknown_ordering(route: &Route, query: &Query) -> Option<String> {
    if !LENIENT_ORDERINGS.contains(&route.path) || query.single(STRICT) == Some("true") {
        return None;
    }
    let field = route.inputs.query.iter().find(|it| it.name == ORDERING)?;
    let Kind::Choice(known) = field.kind else { return None };
    query.joined(ORDERING).filter(|it| !known.contains(&it.as_str()))
}

/// Returns whether this parameter of a list is its order, and unknown ones are ignored.
pub(super) fn takes_any_ordering(route: &Route, parameter: &Field) -> bool {
    parameter.name == ORDERING && LENIENT_ORDERINGS.contains(&route.path)
}

/// Returns a further member of the envelope of a list.
pub(super) fn flag(path: &str) -> Option<&'static str> {
    ["/api/channels/", "/api/channels/channels/"].contains(&path).then_some("has_unassigned_epg_channels")
}
