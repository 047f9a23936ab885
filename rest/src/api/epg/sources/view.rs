//! The fields of guide sources, and their views by level.

use std::collections::HashSet;
use std::sync::Arc;

use actors::GuidePhase;
use domain::guide::channel::GuideChannel;
use domain::guide::index::SourceOrder;
use domain::guide::shift::OFFSET_MINUTES_MAX;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::state::{GuideState, GuideStatus};
use domain::ids::{AccountId, GuideSourceId};
use domain::secret::Secret;
use domain::user::UserLevel;
use resource_derive::View;
use route_frame::call::Call;
use route_frame::value::{Time, WriteOnly};
use serde::Serialize;
use serde_json::{Map, Value};
use server::reply::Refusal;
use storage::Table;

use crate::api::text::shown_url;
use crate::choice::{Named, choice};
use crate::context::{RestCall, RestContext};
use crate::record::{Lookup, Render, view_from};
use crate::text_code::TextCodeView;

/// A guide source: an origin of programmes.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewEPGSource, edit = EPGSourceEdit)]
pub(crate) struct EPGSourceView {
    /// Assigned by the gateway and never reused.
    #[field(example = "1")]
    id: GuideSourceId,
    /// Unique name.
    #[field(required, chars_max = 255, example = "Guide")]
    name: String,
    /// Kind of source. `xmltv`: a guide from `url` or from an uploaded file. `panel`: the guide of the panel of `account`.
    /// `schedules_direct`: the service with this name. `dummy`: made from the names of channels. `stream`: tables in the
    /// streams that are played. `written`: programmes that clients write. It cannot be changed.
    #[field(required, example = "xmltv")]
    source_type: Named<GuideSourceKind>,
    /// URL of the guide or of the service, often with credentials. Non-admins see only the host. A new one replaces the
    /// uploaded file.
    #[field(edit, blank, chars_max = 2_048, example = "http://guide.example/guide.xml.gz")]
    url: Option<String>,
    /// User name at the service; required for `schedules_direct`. Visible to admins only.
    #[field(edit, blank, chars_max = 255, example = "")]
    username: Option<String>,
    /// Password at the service; required for `schedules_direct`. Omit it to keep it.
    #[field(write_only, blank, chars_max = 255)]
    #[serde(skip)]
    password: WriteOnly<Option<Secret>>,
    /// Id of the account of a source of the type `panel`; it must be of the type `XC` or `STALKER`.
    #[field(edit, example = "2")]
    account: Option<AccountId>,
    /// Programmes of an inactive source are not shown, and it is not refreshed.
    #[field(edit)]
    is_active: bool,
    /// Name of the uploaded file that is the guide. Visible to admins only.
    #[field(example = "")]
    file_path: Option<String>,
    /// Hours between two refreshes; 0 disables them. By default 24 for a new source with an address, and 0 for others.
    #[field(edit, at_most = 8_760, example = "24")]
    refresh_interval: u32,
    /// Whether the guide is never refreshed although nobody chose that: 0 was the default of earlier versions. Sending
    /// `refresh_interval`, also 0, answers it.
    needs_interval: bool,
    /// Cron expression that replaces the interval: minute, hour, day of month, month, day of week.
    #[field(edit, blank, chars_max = 256, example = "30 4 * * *")]
    cron_expression: String,
    /// Of two sources with a channel of the same id, the one with the larger number is used.
    #[field(edit, example = "0")]
    priority: i32,
    /// Days for which past programmes are kept.
    #[field(edit, at_most = HISTORY_DAYS_MAX, example = "7")]
    history_days: u32,
    /// IANA name of the time zone of times in the guide that state none; UTC without one. For sources of the types `xmltv` and
    /// `panel`; a new one counts from the next refresh on.
    #[field(edit, blank, chars_max = 100, example = "Europe/Amsterdam")]
    default_time_zone: Option<String>,
    /// Minutes by which all programmes of the source are later than it says, from -1440 to 1440. The offset of a channel is
    /// added. Sources of the types `dummy` and `written` have none.
    #[field(edit, at_least = -OFFSET_MINUTES, at_most = OFFSET_MINUTES, example = "0")]
    offset_minutes: i16,
    /// State of the last refresh.
    #[field(example = "success")]
    status: Named<Status>,
    /// Result of the last refresh, for people.
    last_message: Option<String>,
    /// The code of `last_message`, if it has one.
    last_message_code: Option<TextCodeView>,
    /// When the source was created.
    created_at: Time,
    /// When the source was last changed or successfully refreshed.
    updated_at: Option<Time>,
    /// Settings of the type of source. Visible to admins only.
    #[field(edit)]
    custom_properties: Option<Map<String, Value>>,
    /// Number of channels of the guide.
    #[field(example = "300")]
    epg_data_count: usize,
    /// Number of programmes of the guide, with those of the past that are kept.
    #[field(example = "50000")]
    program_count: u64,
    /// Whether a channel uses the guide.
    has_channels: bool,
}

/// Maximum number of days for which past programmes are kept. Catch-up at providers ends long before.
const HISTORY_DAYS_MAX: i64 = 60;
/// Maximum offset of a guide, in minutes either way.
const OFFSET_MINUTES: i64 = OFFSET_MINUTES_MAX as i64;

choice!(GuideSourceKind {
    Xmltv = "xmltv",
    SchedulesDirect = "schedules_direct",
    Generated = "dummy",
    Panel = "panel",
    Stream = "stream",
    Written = "written",
});

choice!(
    /// State of the last refresh of a guide source.
    enum Status {
        Idle = "idle",
        Fetching = "fetching",
        Parsing = "parsing",
        Error = "error",
        Success = "success",
        Disabled = "disabled",
    }
);

/// Data that views of guide sources depend on.
pub(crate) struct SourceLookup {
    context: Arc<RestContext>,
    is_admin: bool,
    states: Arc<Table<GuideState>>,
    /// Sources whose guide a channel uses.
    used: HashSet<GuideSourceId>,
}

impl Lookup for SourceLookup {
    fn load(call: &Call) -> Result<Self, Refusal> {
        let models = &call.rest().models;
        let guide = models.guide.load();
        let sources = models.guide_sources.load();
        let order = SourceOrder::new(sources.iter().map(|it| &**it));
        let channels = models.channels.load();
        let used = channels.iter().filter_map(|it| Some(guide.shown_channel(it, &order)?.source)).collect();
        Ok(Self {
            is_admin: call.identity()?.may(UserLevel::Admin),
            states: models.guide_states.load(),
            used,
            context: Arc::clone(call.rest()),
        })
    }
}

impl Render for GuideSource {
    type View = EPGSourceView;
    type Lookup = SourceLookup;

    fn view(&self, lookup: &SourceLookup) -> EPGSourceView {
        let state = lookup.states.get(self.id.0).map(|it| &**it);
        let (status, last_message) = status_of(self, &lookup.context, state);
        let for_admins = |it: &Option<String>| it.clone().filter(|_| lookup.is_admin);
        let good_at = state.and_then(|it| it.good_at);
        let changed_at = Some(self.updated_at).filter(|it| *it != self.created_at);
        let channels = lookup.context.models.store.collection::<GuideChannel>();
        view_from!(EPGSourceView from self {
            id, name, account, is_active, priority, history_days, offset_minutes, created_at;
            default_time_zone: self.time_zone.clone(),
            source_type: Named(self.kind),
            url: self.url.as_ref().and_then(|it| shown_url(it, lookup.is_admin)),
            username: for_admins(&self.username),
            password: WriteOnly::HIDDEN,
            file_path: for_admins(&self.file),
            refresh_interval: self.schedule.interval_hours,
            needs_interval: self.needs_schedule(),
            cron_expression: self.schedule.cron.clone(),
            status: Named(status),
            last_message_code: last_message.as_deref().and_then(TextCodeView::find),
            last_message,
            updated_at: changed_at.max(good_at).map(Time),
            custom_properties: Some(match lookup.is_admin {
                true => self.custom_properties.clone(),
                false => Map::new(),
            }),
            epg_data_count: channels.len_of(u64::from(self.id.0)),
            program_count: state.map_or(0, |it| it.n_programmes),
            has_channels: lookup.used.contains(&self.id),
        })
    }
}

/// Returns the state of the last refresh, and its result for people.
fn status_of(
    source: &GuideSource,
    context: &RestContext,
    state: Option<&GuideState>,
) -> (Status, Option<String>) {
    let progress = context.guide.guide_refreshes.progress_of(source.id);
    let running = progress.as_ref().map(|it| it.phase).filter(|it| *it != GuidePhase::Done);
    // The last result is in memory, even if it could not be stored.
    let ended = progress.as_ref().and_then(|it| Some((it.outcome?, it.message.as_str())));
    let ended = ended.or_else(|| state.map(|it| (it.status, it.message.as_str())));
    let status = match (running, ended) {
        (Some(GuidePhase::Waiting | GuidePhase::Fetching), _) => Status::Fetching,
        (Some(_), _) => Status::Parsing,
        (None, _) if !source.is_active => Status::Disabled,
        (None, Some((GuideStatus::Success, _))) => Status::Success,
        (None, Some((GuideStatus::Error, _))) => Status::Error,
        (None, Some((GuideStatus::Idle, _)) | None) => Status::Idle,
    };
    (status, ended.map(|it| it.1.to_owned()).filter(|it| !it.is_empty()))
}
