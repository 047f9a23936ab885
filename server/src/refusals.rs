//! Refusals of invalid input and of missing permissions, and the refusals for errors of the store.

use http::StatusCode;
use serde_json::json;
use storage::{Error as StoreError, Fault, StopReason};
use tracing::error;
use uuid::Uuid;

use crate::field_errors::FieldErrors;
use crate::noun::Noun;
use crate::reply::Refusal;

impl Refusal {
    /// 400 with messages by field.
    pub fn fields(errors: FieldErrors) -> Self {
        Refusal::status(StatusCode::BAD_REQUEST).with_body(errors.into_body())
    }

    /// 400 with a message for one field.
    pub fn field(field: &str, message: impl Into<String>) -> Self {
        Refusal::fields(FieldErrors::new(field, message))
    }

    /// 400: another record has the same value in this field.
    pub fn taken(field: &str) -> Self {
        Refusal::field(field, "This field must be unique.")
    }

    /// 400: a field refers to a record that does not exist.
    pub fn no_such(field: &str, id: impl std::fmt::Display) -> Self {
        Refusal::field(field, format!("Invalid pk \"{id}\" - object does not exist."))
    }

    /// 404: the record does not exist, or the client may not see it.
    pub fn unknown<T: Noun>() -> Self {
        Refusal::not_found(format!("No {} matches the given query.", T::NOUN))
    }

    /// 401: the request has no credentials.
    pub fn no_credentials() -> Self {
        Refusal::unauthorized("Authentication credentials were not provided.")
    }

    /// 403.
    pub fn no_permission() -> Self {
        Refusal::status(StatusCode::FORBIDDEN)
            .with_detail("You do not have permission to perform this action.")
    }

    /// 413.
    pub fn too_large(bytes_max: usize) -> Self {
        Refusal::status(StatusCode::PAYLOAD_TOO_LARGE)
            .with_detail(format!("The body is larger than {bytes_max} bytes."))
    }

    /// 415.
    pub fn unsupported(what: &str) -> Self {
        Refusal::status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
            .with_detail(format!("Unsupported {what} in request."))
    }

    /// 500 with an id that identifies the error in the log. `what` completes "failed to …".
    pub fn fault(what: impl std::fmt::Display) -> Self {
        let request_id = Uuid::new_v4();
        error!(request.id = %request_id, "failed to {what}");
        Refusal::bug().with_body(json!({ "detail": "internal error", "request_id": request_id }))
    }
}

/// Describes why the store refuses writes, and what to do.
pub fn refused_writes(why: &StopReason) -> String {
    let advice = why.advice();
    format!(
        "The store refuses changes: {why}. To continue, {advice}; a restart is not needed. Playback continues."
    )
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Taken { index, .. } => Refusal::taken(index),
            StoreError::Stopped(why) => Refusal::unavailable(refused_writes(&why)).retry_soon(),
            StoreError::Closed => Refusal::unavailable("The gateway is stopping.").retry_soon(),
            // Named by its cause, and gone when the store continues.
            StoreError::Disk {
                fault: Fault::Full | Fault::Denied | Fault::ReadOnly | Fault::Device, ..
            }
            | StoreError::Busy(_)
            | StoreError::NoRoom { .. }
            | StoreError::Interrupted
            | StoreError::NotWriter
            | StoreError::LogUnknown
            | StoreError::LogUnreachable(_) => Refusal::unavailable(error.to_string()).retry_soon(),
            // A person has to do something, or this node restarts soon.
            StoreError::LogBroken(_)
            | StoreError::LogBehind(_)
            | StoreError::LogReplaced
            | StoreError::LogTooNew(_) => Refusal::unavailable(error.to_string()),
            StoreError::TooLarge { .. } => Refusal::bad_request(error.to_string()),
            other => Refusal::fault(format_args!("use the store: {other}")),
        }
    }
}

impl From<FieldErrors> for Refusal {
    fn from(errors: FieldErrors) -> Self {
        Refusal::fields(errors)
    }
}
