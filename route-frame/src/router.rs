//! Finds the routes of a path in a tree of path segments, built once from the table.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use domain::user;
use http::Method;
use percent_encoding::percent_decode_str;

use super::call::Parameters;
use super::route::Route;

/// All routes, by path.
#[derive(Default)]
pub struct Router {
    root: Node,
    /// Tests for further paths, each with the path of its route.
    further: Vec<(PathTest, &'static str)>,
}

/// Returns whether a path belongs to a route.
pub(super) type PathTest = fn(&str) -> bool;

#[derive(Default)]
struct Node {
    /// A literal segment takes precedence over a parameter.
    literals: BTreeMap<&'static str, Node>,
    parameter: Option<(&'static str, Box<Node>)>,
    routes: Vec<Arc<Route>>,
}

/// The routes of a path, and the values of its parameters.
pub struct PathMatch<'a> {
    routes: &'a [Arc<Route>],
    /// The values of the parameters of the path.
    pub parameters: Parameters,
}

impl Router {
    /// Builds the tree. A test ensures that no two routes have the same method and path.
    pub fn new(routes: impl IntoIterator<Item = Route>) -> Self {
        let mut router = Router::default();
        for route in routes {
            router.further.extend(route.also_at.map(|it| (it, route.path)));
            let mut node = &mut router.root;
            for segment in segments(route.path) {
                node = match segment.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
                    Some(name) => &mut node.parameter.get_or_insert_with(|| (name, Box::default())).1,
                    None => node.literals.entry(segment).or_default(),
                };
            }
            node.routes.push(Arc::new(route));
        }
        router
    }

    /// Returns the routes of a path, with or without its trailing slash. A parameter at the start of a path matches no
    /// segment that the gateway's own addresses start with.
    pub fn find(&self, path: &str) -> Option<PathMatch<'_>> {
        self.find_own(path).or_else(|| {
            let (_, own) = self.further.iter().find(|(has_path, _)| has_path(path))?;
            self.find_own(own)
        })
    }

    fn find_own(&self, path: &str) -> Option<PathMatch<'_>> {
        let decode = |segment| percent_decode_str(segment).decode_utf8().ok();
        let segments: Vec<Cow<'_, str>> = segments(path).map(decode).collect::<Option<_>>()?;
        let mut parameters = Parameters::default();
        let routes = self.root.find(&segments, &mut parameters)?;
        let starts_with_parameter = routes.iter().any(|it| it.path.starts_with("/{"));
        let is_reserved = starts_with_parameter && segments.first().is_some_and(|it| user::is_reserved(it));
        (!is_reserved).then_some(PathMatch { routes, parameters })
    }
}

impl Node {
    /// Returns the routes below this node for the rest of a path, and adds the values of its parameters. Tries the
    /// parameter where the literal segment leads to no route.
    fn find(&self, path: &[Cow<'_, str>], parameters: &mut Parameters) -> Option<&[Arc<Route>]> {
        let Some((segment, rest)) = path.split_first() else {
            return (!self.routes.is_empty()).then_some(&self.routes);
        };
        let literal = self.literals.get(&**segment).and_then(|it| it.find(rest, parameters));
        literal.or_else(|| {
            let (name, node) = self.parameter.as_ref()?;
            if !parameters.push(name, segment) {
                return None;
            }
            let found = node.find(rest, parameters);
            if found.is_some() {
                return found;
            }
            parameters.pop();
            let takes_rest = node.routes.iter().any(|it| it.takes_rest);
            (takes_rest && parameters.push(name, &path.join("/"))).then_some(&node.routes)
        })
    }
}

impl PathMatch<'_> {
    /// Returns the route for a method. HEAD is handled like GET; the connection omits the body.
    pub fn route(&self, method: &Method) -> Option<&Arc<Route>> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.routes.iter().find(|it| it.method == *method)
    }

    /// Returns whether pages of any origin may read answers of this path, at least to requests with a login.
    pub(super) fn is_for_any_origin(&self) -> bool {
        self.routes.iter().any(|it| it.readers.are_all(true))
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

fn segments(path: &str) -> impl Iterator<Item = &str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.strip_suffix('/').unwrap_or(path).split('/')
}

#[cfg(test)]
mod tests {
    use server::reply::Refusal;
    use uuid::Uuid;

    use super::*;
    use crate::access::Access;
    use crate::call::Call;
    use crate::route::NoContent;

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
    fn a_literal_segment_takes_precedence_unless_it_leads_to_no_route() {
        let router = Router::new([
            Route::get("/proxy/ts/status", Access::Anyone, "", nothing),
            Route::get("/proxy/ts/stream/{target}", Access::Anyone, "", nothing),
            Route::get("/live/{user}/{password}/{file}", Access::Anyone, "", nothing),
            Route::get("/anna/{name}", Access::Anyone, "", nothing),
            Route::get("/{user}/{password}/{file}", Access::Anyone, "", nothing),
        ]);
        for (path, expected) in [
            ("/proxy/ts/status", Some("/proxy/ts/status")),
            ("/proxy/ts/stream/status", Some("/proxy/ts/stream/{target}")),
            ("/live/anna/pw/7.ts", Some("/live/{user}/{password}/{file}")),
            ("/live/live/live/7", Some("/live/{user}/{password}/{file}")),
            ("/anna/pw", Some("/anna/{name}")),
            ("/anna/pw/7", Some("/{user}/{password}/{file}")),
            // Own addresses of the gateway start with these segments.
            ("/live/pw/7", None),
            ("/Live/pw/7", None),
            ("/proxy/ts/7", None),
            ("/%61pi/pw/7", None),
        ] {
            let found = router.find(path);
            assert_eq!(found.as_ref().map(|it| it.routes[0].path), expected, "{path}");
        }
        let found = router.find("/anna/pw/7").unwrap();
        let (user, password) = (found.parameters.text("user"), found.parameters.text("password"));
        assert_eq!((user, password, found.parameters.number("file")), (Some("anna"), Some("pw"), Some(7)));
    }

    #[test]
    fn the_last_parameter_takes_the_rest_of_a_path_if_its_route_says_so() {
        let router = Router::new([
            Route::delete("/api/rules/{key}/", Access::Anyone, "", nothing).with_rest(),
            Route::post("/api/rules/preview/", Access::Anyone, "", nothing),
            Route::get("/api/things/{key}/", Access::Anyone, "", nothing),
        ]);
        for (path, key) in [
            ("/api/rules/a/", "a"),
            ("/api/rules/a%2Fb/", "a/b"),
            ("/api/rules/a/b/", "a/b"),
            ("/api/rules/http://example/7.x/", "http://example/7.x"),
            ("/api/rules/preview/a", "preview/a"),
        ] {
            let found = router.find(path).unwrap();
            assert_eq!(
                (found.routes[0].path, found.parameters.text("key")),
                ("/api/rules/{key}/", Some(key))
            );
        }
        assert_eq!(router.find("/api/rules/preview/").unwrap().routes[0].path, "/api/rules/preview/");
        assert!(router.find("/api/things/a/b/").is_none());
    }

    #[test]
    fn a_route_serves_its_further_paths_unless_another_route_has_them() {
        let router = Router::new([
            Route::get("/", Access::Anyone, "", nothing).also_at(|it| it.starts_with("/now")),
            Route::get("/nowhere", Access::Anyone, "", nothing),
        ]);
        for (path, expected) in
            [("/", Some("/")), ("/now/7", Some("/")), ("/nowhere", Some("/nowhere")), ("/later", None)]
        {
            assert_eq!(router.find(path).as_ref().map(|it| it.routes[0].path), expected, "{path}");
        }
    }

    #[test]
    fn parameters_are_percent_decoded_and_a_plus_stays_a_plus() {
        let router = Router::new([Route::get("/live/{user}/{password}/{file}", Access::Anyone, "", nothing)]);
        let read = |path: &str| {
            let found = router.find(path)?.parameters;
            let (user, password) = (found.text("user")?.to_owned(), found.text("password")?.to_owned());
            Some((user, password, found.number("file")?))
        };
        let anna = |password: &str| Some(("anna".to_owned(), password.to_owned(), 7));
        for (path, expected) in [
            ("/live/anna/pw/7.ts", anna("pw")),
            ("/live/anna/pw/7", anna("pw")),
            ("/live/anna/pw/7.ts/", anna("pw")),
            ("/live/%61nna/p%2Fw%20x/7", anna("p/w x")),
            ("/live/anna/p+w/7", anna("p+w")),
            ("/live/anna/p%2Bw/7", anna("p+w")),
            ("/live/anna/%C3%A4/7", anna("ä")),
            ("/live/anna/pw/7.ts//", None),
            ("/live/anna/pw/7/8", None),
            ("/live/anna/pw", None),
            ("/live/anna//7", None),
            ("/live//pw/7", None),
            ("//live/anna/pw/7", None),
            ("/live/anna/%ff/7", None),
            ("/live/", None),
            ("/live////", None),
        ] {
            assert_eq!(read(path), expected, "{path}");
        }
    }

    #[test]
    fn a_file_is_the_id_of_a_record_with_or_without_ts() {
        let router = Router::new([Route::get("/live/{file}", Access::Anyone, "", nothing)]);
        for (name, expected) in [
            ("7", Some(7)),
            ("7.ts", Some(7)),
            ("0007.ts", Some(7)),
            ("7.m3u8", None),
            ("7.mp4", None),
            ("7.ts.ts", None),
            ("+7", None),
            ("-1", None),
            ("7.0", None),
            ("4294967296", None),
            ("abc.ts", None),
            (".ts", None),
            ("", None),
        ] {
            let found = router.find(&format!("/live/{name}"));
            assert_eq!(found.and_then(|it| it.parameters.number("file")), expected, "{name}");
        }
    }

    #[test]
    fn parameters_are_returned_by_name() {
        let router = router();
        let found = router.find("/api/things/7/parts/0008/").unwrap().parameters;
        assert_eq!((found.number("id"), found.number("part_id"), found.uuid()), (Some(7), Some(8), None));
        let found = router.find("/proxy/others/00000000-0000-0000-0000-000000000007/").unwrap().parameters;
        assert_eq!((found.uuid(), found.number("uuid")), (Some(Uuid::from_u128(7)), None));
    }

    #[test]
    fn a_text_in_a_path_does_not_print_itself() {
        let router = Router::new([Route::get("/live/{user}/{password}/{file}", Access::Anyone, "", nothing)]);
        let found = router.find("/live/anna/hunter2/7").unwrap();
        let printed = format!("{:?}", found.parameters);
        assert!(!printed.contains("hunter2") && !printed.contains("anna"), "{printed}");
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
