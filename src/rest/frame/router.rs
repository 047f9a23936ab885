//! Finds the routes of a path in a tree of path segments, built once from the table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::Method;
use percent_encoding::percent_decode_str;

use super::call::Parameter;
use super::route::Route;

/// All routes, by path.
#[derive(Default)]
pub(super) struct Router {
    root: Node,
    /// Prefixes of the paths: `/api`, and of other routes the part before their parameters.
    areas: BTreeSet<&'static str>,
}

#[derive(Default)]
struct Node {
    /// A literal segment takes precedence over a parameter.
    literals: BTreeMap<&'static str, Node>,
    parameter: Option<(&'static str, Box<Node>)>,
    routes: Vec<Arc<Route>>,
}

/// The routes of a path, and the values of its parameters.
pub(super) struct PathMatch<'a> {
    routes: &'a [Arc<Route>],
    pub(super) parameters: Vec<(&'static str, Parameter)>,
}

impl Router {
    /// Builds the tree. A test ensures that no two routes have the same method and path.
    pub(super) fn new(routes: impl IntoIterator<Item = Route>) -> Self {
        let mut router = Router::default();
        for route in routes {
            let mut node = &mut router.root;
            for segment in segments(route.path) {
                node = match segment.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
                    Some(name) => &mut node.parameter.get_or_insert_with(|| (name, Box::default())).1,
                    None => node.literals.entry(segment).or_default(),
                };
            }
            router.areas.extend(area(route.path));
            node.routes.push(Arc::new(route));
        }
        router
    }

    /// Returns whether the table answers this path, if only with 404.
    pub(super) fn covers(&self, path: &str) -> bool {
        let is_in =
            |area: &&str| path.strip_prefix(area).is_some_and(|it| it.is_empty() || it.starts_with('/'));
        self.areas.iter().any(is_in) || self.find(path).is_some()
    }

    /// Returns the routes of a path, with or without its trailing slash.
    pub(super) fn find(&self, path: &str) -> Option<PathMatch<'_>> {
        let mut node = &self.root;
        let mut parameters = Vec::new();
        for segment in segments(path) {
            let segment = percent_decode_str(segment).decode_utf8().ok()?;
            node = match (node.literals.get(&*segment), &node.parameter) {
                (Some(node), _) => node,
                (None, Some((name, node))) => {
                    parameters.push((*name, Parameter::read(name, &segment)?));
                    node
                }
                (None, None) => return None,
            };
        }
        (!node.routes.is_empty()).then_some(PathMatch { routes: &node.routes, parameters })
    }
}

impl PathMatch<'_> {
    /// Returns the route for a method. HEAD is handled like GET; the connection omits the body.
    pub(super) fn route(&self, method: &Method) -> Option<&Arc<Route>> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.routes.iter().find(|it| it.method == *method)
    }

    /// Returns the methods of this path in the format of the header `Allow`.
    pub(super) fn allow(&self) -> String {
        let mut methods: Vec<&str> = self.routes.iter().map(|it| it.method.as_str()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.push("OPTIONS");
        methods.sort_unstable();
        methods.join(", ")
    }
}

/// Returns the prefix below which the table answers every path. Outside `/api` other modules have routes too, so the
/// prefix is as long as possible there.
fn area(path: &'static str) -> Option<&'static str> {
    let prefix = match path.starts_with("/api/") {
        true => "/api",
        false => path.split('{').next().unwrap_or(path).trim_end_matches('/'),
    };
    (!prefix.is_empty()).then_some(prefix)
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.strip_suffix('/').unwrap_or(path).split('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::reply::Refusal;
    use crate::rest::frame::call::Call;
    use crate::rest::frame::route::{Access, NoContent};

    async fn nothing(_: Call) -> Result<NoContent, Refusal> {
        Ok(NoContent)
    }

    fn router() -> Router {
        Router::new([
            Route::get("/api/", Access::Anyone, "", nothing),
            Route::get("/api/things/", Access::Anyone, "", nothing),
            Route::post("/api/things/", Access::Anyone, "", nothing),
            Route::get("/api/things/all/", Access::Anyone, "", nothing),
            Route::get("/api/things/{id}/", Access::Anyone, "", nothing),
            Route::delete("/api/things/{id}/parts/{part_id}/", Access::Anyone, "", nothing),
            Route::get("/proxy/others/{uuid}", Access::Anyone, "", nothing),
        ])
    }

    fn check(path: &str, expected: Option<&str>) {
        let router = router();
        let found = router.find(path);
        assert_eq!(found.as_ref().map(|it| it.routes[0].path), expected, "{path}");
    }

    #[test]
    fn a_path_is_found_with_and_without_its_last_slash() {
        check("/api/", Some("/api/"));
        check("/api", Some("/api/"));
        check("/api/things/", Some("/api/things/"));
        check("/api/things", Some("/api/things/"));
        check("/api/th%69ngs", Some("/api/things/"));
        check("/api/things/all", Some("/api/things/all/"));
        check("/api/things/7", Some("/api/things/{id}/"));
        check("/proxy/others/00000000-0000-0000-0000-000000000007/", Some("/proxy/others/{uuid}"));
        check("/api/things/7/parts/%38/", Some("/api/things/{id}/parts/{part_id}/"));
    }

    #[test]
    fn a_path_that_differs_from_every_route_is_not_found() {
        for path in [
            "/api//",
            "/api//things/",
            "/api/things//",
            "/api/things/x/",
            "/api/things/-1/",
            "/api/things/+1/",
            "/api/things/1.0/",
            "/api/things/4294967296/",
            "/api/things/%ff/",
            "/api/things/7/parts/",
            "/proxy/others/7",
            "/api/Things/",
            "/api/thing/",
        ] {
            check(path, None);
        }
    }

    #[test]
    fn outside_api_only_paths_below_a_route_are_covered() {
        let router = Router::new([
            Route::get("/api/things/", Access::Anyone, "", nothing),
            Route::get("/proxy/ts/status", Access::Anyone, "", nothing),
            Route::get("/proxy/ts/stop/{uuid}", Access::Anyone, "", nothing),
            Route::get("/", Access::Anyone, "", nothing),
        ]);
        for path in
            ["/", "/api", "/api/", "/api/x", "/proxy/ts/status", "/proxy/ts/status/", "/proxy/ts/stop/x/y"]
        {
            assert!(router.covers(path), "{path}");
        }
        for path in
            ["/apis", "/x", "/proxy/ts", "/proxy/ts/stream/x", "/proxy/ts/stop_it", "/proxy/ts/stops/x"]
        {
            assert!(!router.covers(path), "{path}");
        }
    }

    #[test]
    fn parameters_are_returned_with_their_names() {
        let router = router();
        let found = router.find("/api/things/7/parts/0008/").unwrap();
        assert_eq!(found.parameters, [("id", Parameter::Id(7)), ("part_id", Parameter::Id(8))]);
    }

    #[test]
    fn a_path_lists_its_methods() {
        let router = router();
        let found = router.find("/api/things/").unwrap();
        assert_eq!(found.allow(), "GET, HEAD, OPTIONS, POST");
        assert!(found.route(&Method::HEAD).is_some() && found.route(&Method::PUT).is_none());
        assert_eq!(router.find("/api/things/1/parts/1/").unwrap().allow(), "DELETE, OPTIONS");
    }

    #[test]
    fn one_handler_can_serve_several_methods() {
        let router = Router::new(Route::each(
            [Method::GET, Method::POST],
            "/player_api.php",
            Access::Anyone,
            "",
            nothing,
        ));
        assert_eq!(router.find("/player_api.php").unwrap().allow(), "GET, HEAD, OPTIONS, POST");
    }
}
