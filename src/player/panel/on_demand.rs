//! Films and series, as a panel describes them. The gateway has none yet.

use serde_json::{Value, json};

/// Returns an empty list of categories, films or series.
pub(super) fn nothing() -> Value {
    json!([])
}

/// Returns the answer to the id of an unknown film. Apps recognise it by the empty list.
pub(super) fn unknown_film() -> Value {
    json!({ "info": [], "movie_data": [] })
}

/// Returns the answer to the id of an unknown series. Apps recognise it by the name, which is `null` only here.
pub(super) fn unknown_series() -> Value {
    json!({
        "seasons": [],
        "info": {
            "name": null, "title": "", "cover": "", "plot": "", "cast": "", "director": "", "genre": "",
            "release_date": "", "releaseDate": "", "last_modified": "0", "rating": "0", "rating_5based": 0,
            "backdrop_path": [], "youtube_trailer": "", "episode_run_time": "0", "category_id": "",
            "category_ids": [],
        },
        "episodes": {},
    })
}
