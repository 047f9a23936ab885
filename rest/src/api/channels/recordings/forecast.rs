//! `/api/channels/recordings/forecast/`: conflicts before they happen.

use std::sync::Arc;

use actors::now_ms;
use domain::ids::{AccountId, ChannelId, ProfileId, RecordingId};
use domain::recording::forecast::{FORECAST_MS, FullAccount, Prospect};
use resource_derive::View;
use route_frame::call::Call;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use services::guide::read_guide;
use services::recording_forecast::Alternative;

use super::access::may_see;
use super::program_id::ProgramId;
use super::view::ForecastState;
use crate::choice::Named;
use crate::context::RestCall;

/// The forecast of the next two weeks.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RecordingForecastView {
    /// End of the forecast.
    until: Time,
    /// Number of recordings that will have no connection.
    conflicts: usize,
    /// Upcoming and running recordings by their start. Non-admins find their own.
    results: Vec<ForecastedRecordingView>,
}

/// The prospects of a recording.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ForecastedRecordingView {
    /// Id of the recording.
    #[field(example = "4")]
    recording_id: RecordingId,
    /// Title.
    title: String,
    /// Id of the channel.
    channel_id: ChannelId,
    /// Start, without padding.
    start_time: Time,
    /// End, without padding.
    end_time: Time,
    /// `padding_cut` has a connection for the programme but not for all of the padding.
    forecast: Named<ForecastState>,
    /// Id of the account that is expected to be used. For admins.
    account_id: Option<AccountId>,
    /// Id of its profile. For admins.
    profile_id: Option<ProfileId>,
    /// Seconds of padding before the start that have a connection.
    padding_before: u32,
    /// Seconds of padding after the end that have a connection.
    padding_after: u32,
    /// The accounts that are full, if the recording is lost. For admins.
    full_accounts: Vec<FullAccountView>,
    /// Another showing of the episode that would have a connection.
    alternative: Option<AlternativeView>,
}

/// An account without a free slot.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct FullAccountView {
    /// Id of the account.
    #[field(example = "2")]
    account_id: AccountId,
    /// Name of the account.
    account_name: String,
    /// Maximum number of connections, of the account or of its server group.
    max_streams: u32,
    /// When it is full first within the programme.
    from: Time,
    /// Until when it is full.
    until: Time,
    /// Recordings that use it then, at most 50.
    recording_ids: Vec<RecordingId>,
}

/// Another showing of an episode.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct AlternativeView {
    /// Id of the channel.
    channel_id: ChannelId,
    /// Id of the programme.
    program_id: Option<ProgramId>,
    /// Start.
    start_time: Time,
    /// End.
    end_time: Time,
}

pub(super) async fn get(call: Call) -> Result<RecordingForecastView, Refusal> {
    let (context, may_see, is_admin) = (Arc::clone(call.rest()), may_see(&call)?, call.is_admin());
    read_guide(move || {
        let forecast = context.recordings.recorder.forecast(&context.models);
        let others = context.recordings.recording_rules.alternatives(&forecast);
        let recordings = context.models.recordings.load();
        let mut results = Vec::new();
        for (id, prospect) in forecast.prospects() {
            let Some(recording) = recordings.get(id.0).filter(|it| may_see(it)) else { continue };
            let mut view = ForecastedRecordingView {
                recording_id: id,
                title: recording.title().to_owned(),
                channel_id: recording.channel,
                start_time: Time(recording.start),
                end_time: Time(recording.end),
                forecast: Named(ForecastState::new(recording, prospect)),
                account_id: None,
                profile_id: None,
                padding_before: 0,
                padding_after: 0,
                full_accounts: Vec::new(),
                alternative: others.get(&id).map(alternative),
            };
            match prospect {
                Prospect::Assigned { account, profile, padding_before, padding_after } => {
                    (view.account_id, view.profile_id) =
                        if is_admin { (Some(*account), Some(*profile)) } else { (None, None) };
                    let seconds = |ms: i64| u32::try_from(ms / 1000).unwrap_or_default();
                    (view.padding_before, view.padding_after) =
                        (seconds(*padding_before), seconds(*padding_after));
                }
                Prospect::Lost(full) if is_admin => {
                    view.full_accounts = full.iter().map(full_account).collect()
                }
                Prospect::Lost(_) | Prospect::NoSource => {}
            }
            results.push(view);
        }
        results.sort_by_key(|it| (it.start_time.0, it.recording_id));
        let is_conflict = |it: &&ForecastedRecordingView| {
            matches!(it.forecast.0, ForecastState::Lost | ForecastState::NoSource)
        };
        let conflicts = results.iter().filter(is_conflict).count();
        Ok(RecordingForecastView { until: Time(now_ms().saturating_add(FORECAST_MS)), conflicts, results })
    })
    .await
}

fn full_account(it: &FullAccount) -> FullAccountView {
    FullAccountView {
        account_id: it.account,
        account_name: it.account_name.clone(),
        max_streams: it.max_streams,
        from: Time(it.from),
        until: Time(it.until),
        recording_ids: it.holders.clone(),
    }
}

fn alternative(it: &Alternative) -> AlternativeView {
    let programme = it.airing.programme.as_ref();
    AlternativeView {
        channel_id: it.channel,
        program_id: programme.and_then(|it| it.id.clone()).map(ProgramId),
        start_time: Time(it.airing.start),
        end_time: Time(it.airing.end),
    }
}
