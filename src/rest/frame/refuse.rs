//! What is said when something cannot be had: the refusals of this interface, and what the errors of the store become.

use http::{Method, StatusCode};
use serde_json::json;
use storage::Error as StoreError;
use tracing::error;
use uuid::Uuid;

use super::call::Noun;
use super::input::FieldErrors;
use crate::auth::Denied;
use crate::http::reply::Refusal;

impl Refusal {
    /// 400: for each field what is wrong with it.
    pub(crate) fn fields(errors: FieldErrors) -> Self {
        Refusal::status(StatusCode::BAD_REQUEST).with_body(errors.into_json())
    }

    /// 400: what is wrong with one field.
    pub(crate) fn field(field: &str, message: impl Into<String>) -> Self {
        Refusal::fields(FieldErrors::of(field, message))
    }

    /// 400: the value of this field is another record's.
    pub(crate) fn taken(field: &str) -> Self {
        Refusal::field(field, "This field must be unique.")
    }

    /// 400: a field refers to a record that is not there.
    pub(crate) fn no_such(field: &str, id: impl std::fmt::Display) -> Self {
        Refusal::field(field, format!("Invalid pk \"{id}\" - object does not exist."))
    }

    /// 404: there is no such record, or none that the caller may know of.
    pub(crate) fn unknown<T: Noun>() -> Self {
        Refusal::not_found(format!("No {} matches the given query.", T::NOUN))
    }

    /// 401: no credentials are shown where some are needed.
    pub(crate) fn no_credentials() -> Self {
        Denied::NoCredentials.into()
    }

    /// 403.
    pub(crate) fn no_permission() -> Self {
        Refusal::status(StatusCode::FORBIDDEN)
            .with_detail("You do not have permission to perform this action.")
    }

    /// 405. `allow` are the methods that the path knows.
    pub(super) fn wrong_method(method: &Method, allow: String) -> Self {
        Refusal::method(allow).with_detail(format!("Method \"{method}\" not allowed."))
    }

    /// 413.
    pub(super) fn too_large(bytes_max: usize) -> Self {
        Refusal::status(StatusCode::PAYLOAD_TOO_LARGE)
            .with_detail(format!("The body has more than {bytes_max} bytes."))
    }

    /// 415.
    pub(super) fn unsupported(what: &str) -> Self {
        Refusal::status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
            .with_detail(format!("Unsupported {what} in request."))
    }

    /// 500: we failed to do something. The caller is told a number under which the log says more.
    pub(crate) fn fault(what: impl std::fmt::Display) -> Self {
        let request_id = Uuid::new_v4();
        error!(request.id = %request_id, "failed to {what}");
        Refusal::bug().with_body(json!({ "detail": "internal error", "request_id": request_id }))
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Taken { index, .. } => Refusal::taken(index),
            StoreError::Stopped(_) | StoreError::Closed => {
                Refusal::unavailable("the store takes no writes at the moment").retry_soon()
            }
            StoreError::Busy(_) => Refusal::unavailable(error.to_string()).retry_soon(),
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
