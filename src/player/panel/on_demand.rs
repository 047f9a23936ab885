//! Films and series, as a panel describes them. The gateway has none yet.

use serde_json::{Value, json};

/// Returns an empty list of categories, films or series.
pub(super) fn nothing() -> Value {
    json!([])
}

/// Returns the answer to the id of an unknown film.
pub(super) fn unknown_film() -> Value {
    json!({ "info": [], "movie_data": [] })
}

/// Returns the answer to the id of an unknown series.
pub(super) fn unknown_series() -> Value {
    json!({ "seasons": [], "info": [], "episodes": {} })
}
