//! The channels of an operation: by ids, or by the filters of the list with exceptions.

use std::collections::HashSet;
use std::sync::Arc;

use domain::channel::Channel;
use domain::ids::ChannelId;
use resource_derive::Body;
use route_frame::call::Call;
use route_frame::filter::read_filter;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;

use super::filters::ChannelFilters;
use crate::api::channels::values::no_such;
use crate::context::RestCall;

/// Maximum number of channels of one operation.
pub(super) const MANY: usize = 10_000;

/// Selects channels.
#[derive(Clone, Debug, Body)]
#[resource(name = "ChannelSelection")]
pub(crate) struct Selection {
    /// Ids of the channels, each once and in order where the order counts.
    #[field(aliases = &["channel_ids"], items_max = MANY, example = "[1, 2]")]
    pub(super) ids: Option<Vec<ChannelId>>,
    /// Instead of ids: filters of the list of channels. Its `ordering` is the order of the channels.
    #[field(example = "{\"channel_group\": \"News\", \"ordering\": \"name\"}")]
    pub(in crate::api::channels) filter: Option<Map<String, Value>>,
    /// Ids of channels to leave out.
    #[field(items_max = MANY, example = "[7]")]
    pub(super) except: Option<Vec<ChannelId>>,
}

/// Selected channels, in order.
pub(in crate::api::channels) struct Selected {
    pub(in crate::api::channels) ids: Vec<ChannelId>,
    /// Whether the client named the ids, so that each of them has to exist.
    is_named: bool,
}

impl Selection {
    /// Selects the channels of an operation that changes them.
    pub(super) fn resolve(self, call: &Call) -> Result<Selected, Refusal> {
        self.resolve_up_to(call, MANY)
    }

    /// Selects at most this many channels.
    pub(in crate::api::channels) fn resolve_up_to(
        self,
        call: &Call,
        max: usize,
    ) -> Result<Selected, Refusal> {
        let selected = self.select(call)?;
        match selected.ids.len() > max {
            true => Err(too_many("channels", selected.ids.len(), max)),
            false => Ok(selected),
        }
    }

    /// Selects any number of channels, for an operation that changes none.
    pub(super) fn select(self, call: &Call) -> Result<Selected, Refusal> {
        let except: HashSet<ChannelId> = self.except.into_iter().flatten().collect();
        let (mut ids, is_named) = match (self.ids, self.filter) {
            (Some(_), Some(_)) => {
                return Err(Refusal::field("filter", "Send either ids or filter."));
            }
            (Some(ids), None) => (ids, true),
            (None, Some(filter)) => {
                let channels = read_filter::<ChannelFilters>(&filter)?.find(call)?;
                (channels.iter().map(|it| it.id).collect(), false)
            }
            (None, None) => return Err(FieldErrors::required("ids").into()),
        };
        ids.retain(|it| !except.contains(it));
        Ok(Selected { ids, is_named })
    }

    /// Returns whether nothing selects channels.
    pub(in crate::api::channels) fn is_empty(&self) -> bool {
        self.ids.is_none() && self.filter.is_none()
    }
}

/// Returns the refusal of a filter that selects too many records.
pub(in crate::api::channels) fn too_many(what: &str, n: usize, max: usize) -> Refusal {
    Refusal::field("filter", format!("The filter selects {n} {what}; at most {max} can be changed at once."))
}

fn repeated(id: ChannelId) -> String {
    format!("Channel {id} is listed more than once.")
}

impl Selected {
    /// Returns the channels that the caller may see, without waiting for a write. Named ids that do not exist or are
    /// repeated are errors.
    pub(super) fn find(&self, call: &Call) -> Result<Vec<Arc<Channel>>, FieldErrors> {
        let (channels, is_listed) = (call.rest().models.channels.load(), call.listed());
        let mut errors = FieldErrors::default();
        let (mut found, mut seen) = (Vec::with_capacity(self.ids.len()), HashSet::new());
        for id in &self.ids {
            match channels.get(id.0).filter(|it| is_listed(it)) {
                _ if !seen.insert(*id) => errors.add("ids", repeated(*id)),
                None if self.is_named => errors.add("ids", no_such(id)),
                None => {}
                Some(channel) => found.push(Arc::clone(channel)),
            }
        }
        errors.or(found)
    }

    /// Returns the channels as they are now. Named ids that do not exist or are repeated are errors; channels that a
    /// filter selected and that were deleted meanwhile are left out.
    pub(super) fn load(&self, write: &Write<'_>) -> Result<Vec<Channel>, Refusal> {
        let mut errors = FieldErrors::default();
        let (mut channels, mut seen) = (Vec::with_capacity(self.ids.len()), HashSet::new());
        for id in &self.ids {
            match write.get::<Channel>(id.0)? {
                _ if !seen.insert(*id) => errors.add("ids", repeated(*id)),
                None if self.is_named => errors.add("ids", no_such(id)),
                None => {}
                Some(channel) => channels.push(channel),
            }
        }
        errors.or(())?;
        Ok(channels)
    }
}
