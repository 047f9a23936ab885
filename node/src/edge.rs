//! What an edge node answers about records that it does not have: those with secrets of providers.
//!
//! An empty list would look like a gateway without accounts, so such requests are refused with a reason. They are not
//! passed on, because their answers contain the secrets.

/// Paths of the API below which records are of full nodes only, or answers contain such records.
const FULL_ONLY: [&str; 12] = [
    "/api/channels/streams/",
    "/api/channels/undo/",
    "/api/connect/",
    "/api/core/streamprofiles/",
    "/api/core/useragents/",
    "/api/demo/",
    "/api/epg/import/",
    "/api/epg/sources/",
    "/api/m3u/",
    "/api/plugins/",
    "/api/vod/",
    "/api/backups/",
];

/// Returns why an edge node does not answer a request for this path. `None`: it does.
pub(super) fn refusal(path: &str) -> Option<&'static str> {
    let is_below = |prefixes: &[&str]| prefixes.iter().any(|it| path.starts_with(it));
    let is_list_of_streams = path.starts_with("/api/channels/channels/") && path.ends_with("/streams/");
    if is_below(&FULL_ONLY) || is_list_of_streams {
        Some(
            "This node is an edge node, which has no accounts, streams or other records with secrets of providers. Ask a \
             full node; /api/core/nodes/ lists them.",
        )
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_node_refuses_what_needs_secrets_of_providers_and_answers_the_rest() {
        for path in [
            "/api/m3u/accounts/",
            "/api/channels/streams/7/",
            "/api/channels/channels/3/streams/",
            "/api/vod/movies/",
        ] {
            assert!(refusal(path).is_some(), "{path}");
        }
        for path in [
            "/api/channels/channels/",
            "/api/core/nodes/",
            "/api/accounts/token/",
            "/live/anna/secret/7.ts",
            "/movie/anna/secret/7.mp4",
            "/timeshift/anna/secret/60/2026-01-01:10-00/7.ts",
            "/player_api.php",
            "/proxy/ts/stream/1",
        ] {
            assert_eq!(refusal(path), None, "{path}");
        }
    }
}
