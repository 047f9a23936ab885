//! The format of a stream of a channel that a client gets.

use domain::output_format::{AllowedFormats, OutputFormat};
use http::StatusCode;
use route_frame::call::Call;
use server::reply::{Refusal, TunerError};

use super::output_profile::StreamQuery;

/// Returns the format of a request: that of the address, of the query, or the preferred one of the user.
pub(super) fn wanted_format(call: &Call, query: &StreamQuery) -> Result<OutputFormat, Refusal> {
    let asked = call.stream_format().or(query.format());
    // The past of a channel is a transport stream.
    let asked = asked.or_else(|| query.past().map(|_| OutputFormat::Ts));
    let format = asked.unwrap_or_else(|| allowed_formats(call).preferred());
    check_allowed(call, format).map(|()| format)
}

fn allowed_formats(call: &Call) -> AllowedFormats {
    call.user().map_or_else(|_| AllowedFormats::default(), |it| AllowedFormats::from_user(it))
}

/// Refuses a request for the past of a channel in a format that has no past.
pub(super) fn check_present(query: &StreamQuery) -> Result<(), Refusal> {
    match query.past() {
        Some(_) => Err(Refusal::bad_request(
            "The past of a channel is a transport stream: ask for it at the address with the extension .ts.",
        )),
        None => Ok(()),
    }
}

/// Refuses a user who may not play this format.
pub(super) fn check_allowed(call: &Call, format: OutputFormat) -> Result<(), Refusal> {
    let allowed = allowed_formats(call);
    if allowed.contains(format) {
        return Ok(());
    }
    let names: Vec<_> = allowed.iter().map(OutputFormat::name).collect();
    let detail = format!("this user may play the formats {} and not {}", names.join(", "), format.name());
    Err(Refusal::status(StatusCode::FORBIDDEN).with_detail(detail).with_tuner_error(TunerError::TuneFailed))
}
