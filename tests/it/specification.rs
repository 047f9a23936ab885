//! Every operation that the specification of the interface names has a route.

use std::collections::BTreeSet;

/// The operations with a route, one path per line: its methods, and its path with any names of parameters.
const OPERATIONS: &str = "
    GET /api/
    GET POST /api/channels/streams/
    GET PUT DELETE /api/channels/streams/{}/
    GET /api/channels/streams/ids/
    GET /api/channels/streams/groups/
    POST /api/channels/streams/bulk-delete/
    GET POST /api/channels/channels/
    GET PUT PATCH DELETE /api/channels/channels/{}/
    POST /api/channels/channels/bulk-delete/
    GET /api/channels/channels/{}/streams/
    GET POST /api/channels/groups/
    GET PUT PATCH DELETE /api/channels/groups/{}/
    GET POST /api/channels/logos/
    GET PUT DELETE /api/channels/logos/{}/
    POST /api/channels/logos/bulk-delete/
    POST /api/channels/logos/cleanup/
    GET POST /api/channels/recordings/
    PUT DELETE /api/channels/recordings/{}/
    POST /api/channels/recordings/bulk-delete-upcoming/
    GET POST /api/channels/recurring-rules/
    GET PUT PATCH DELETE /api/channels/recurring-rules/{}/
    GET /api/channels/series-rules/
    DELETE /api/channels/series-rules/{}/
    POST /api/channels/series-rules/evaluate/
    POST /api/channels/series-rules/bulk-remove/
    GET PUT /api/channels/dvr/comskip-config/
    GET POST /api/channels/profiles/
    GET PUT DELETE /api/channels/profiles/{}/
    PUT /api/channels/profiles/{}/channels/{}/
    POST /api/channels/profiles/{}/channels/bulk-update/
    GET /api/schema/
    GET /api/schema.json
    GET /api/swagger/
    GET /api/redoc/
    GET /proxy/ts/stream/{}
    GET /live/{}/{}/{}
    GET /api/playlist.m3u
    GET /api/epg.xml
    GET /xmltv.php
    GET /api/vod/movies/
    GET /api/vod/series/
    GET /api/vod/series/{}/episodes/
    GET /api/vod/movies/{}/stream/
    GET /movie/{}/{}/{}
    GET /series/{}/{}/{}
    GET /api/plugins/plugins/
    POST /api/plugins/plugins/reload/
    POST /api/plugins/plugins/import/
    POST /api/plugins/plugins/{}/settings/
    POST /api/plugins/plugins/{}/run/
    POST /api/plugins/plugins/{}/enabled/
";

/// Returns each operation as a method and a path.
fn operations(lines: &str) -> Vec<(String, String)> {
    let mut operations = Vec::new();
    for line in lines.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let mut words: Vec<&str> = line.split(' ').collect();
        let path = words.pop().expect("a line has a path");
        operations.extend(words.iter().map(|method| ((*method).to_owned(), path.to_owned())));
    }
    operations
}

/// Returns a path with its parameters as `{}`.
fn without_names(path: &str) -> String {
    let segments = path.split('/').map(|it| if it.starts_with('{') { "{}" } else { it });
    segments.collect::<Vec<_>>().join("/")
}

fn served() -> BTreeSet<(String, String)> {
    let table = rest::table();
    table.iter().map(|it| (it.method.clone(), without_names(it.path))).collect()
}

/// Holds T-rest.2.
#[test]
fn every_operation_of_the_specification_has_a_route() {
    let served = served();
    let missing: Vec<_> = operations(OPERATIONS).into_iter().filter(|it| !served.contains(it)).collect();
    assert!(missing.is_empty(), "these operations have no route: {missing:#?}");
}
