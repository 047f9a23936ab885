//! Layers: which crate may use which crates and libraries.

use std::collections::BTreeSet;

use super::{HTTP_SOURCES, SOURCES, code_of, read, relative, root, rust_files};

/// The allowed dependencies; printed with each failure.
const LAYERS: &str = "
        domain        media          two leaves that do not know each other
        ▲  ▲  ▲        ▲  ▲
  storage◄─┼────actors─┘  │          storage: domain; the only user of sled
  cluster◄─┤      ▲       │          cluster: domain, storage; the only user of async-nats
        ▲  │      │       │          actors: cluster, domain, media, storage; the only user of ractor and reqwest
        ├──┴─── config ───┤          config … src: all below them, and of media only the re-exports of its crate root
        │         ▲       │
        ├────── server ───┤          server and the crates with routes: the only users of warp
        │         ▲       │
        ├───── services ──┤
        │         ▲       │
        ├─ route-frame, node ┤       what happens to a request around its handler; the nodes of a cluster: they do not know each other
        │         ▲       │
        ├── player, push ─┤          the routes for players; the WebSocket: they do not know each other
        │         ▲       │
        ├────── rest ─────┤          the resources, and the table of all routes: uses player
        │         ▲       │
        └─────── src ─────┘
                  ▲
           tests, benches            fuzz → domain, import-from, media, storage; src, fuzz → import-from → domain

A new dependency needs a page in docs/decisions and a change of tests/it/tidy/layers.rs.
";

/// A crate of the workspace: its name, its folder, and the crates that it may use.
struct CrateRule {
    name: &'static str,
    folder: &'static str,
    may_use: &'static [&'static str],
}

const CRATES: [CrateRule; 17] = [
    CrateRule { name: "domain", folder: "domain", may_use: &[] },
    CrateRule { name: "import-from", folder: "import-from", may_use: &["domain"] },
    CrateRule { name: "media", folder: "media", may_use: &[] },
    CrateRule { name: "storage", folder: "storage", may_use: &["domain"] },
    CrateRule { name: "cluster", folder: "cluster", may_use: &["domain", "storage"] },
    CrateRule { name: "actors", folder: "actors", may_use: &["cluster", "domain", "media", "storage"] },
    CrateRule { name: "config", folder: "config", may_use: &["actors", "cluster", "domain", "media"] },
    CrateRule {
        name: "server",
        folder: "server",
        may_use: &["actors", "config", "domain", "media", "storage"],
    },
    CrateRule {
        name: "services",
        folder: "services",
        may_use: &["actors", "config", "domain", "media", "server", "storage"],
    },
    CrateRule {
        name: "node",
        folder: "node",
        may_use: &["actors", "cluster", "config", "domain", "media", "server", "services", "storage"],
    },
    CrateRule { name: "resource-derive", folder: "route-frame/derive", may_use: &[] },
    CrateRule {
        name: "route-frame",
        folder: "route-frame",
        may_use: &["actors", "config", "domain", "media", "resource-derive", "server", "services", "storage"],
    },
    CrateRule {
        name: "player",
        folder: "player",
        may_use: &[
            "actors",
            "config",
            "domain",
            "media",
            "node",
            "resource-derive",
            "route-frame",
            "server",
            "services",
            "storage",
        ],
    },
    CrateRule {
        name: "push",
        folder: "push",
        may_use: &[
            "actors",
            "config",
            "domain",
            "media",
            "node",
            "route-frame",
            "server",
            "services",
            "storage",
        ],
    },
    CrateRule {
        name: "rest",
        folder: "rest",
        may_use: &[
            "actors",
            "cluster",
            "config",
            "domain",
            "media",
            "node",
            "player",
            "resource-derive",
            "route-frame",
            "server",
            "services",
            "storage",
        ],
    },
    CrateRule {
        name: "headwater",
        folder: ".",
        may_use: &[
            "actors",
            "cluster",
            "config",
            "domain",
            "import-from",
            "media",
            "node",
            "player",
            "push",
            "rest",
            "route-frame",
            "server",
            "services",
            "storage",
        ],
    },
    CrateRule { name: "fuzz", folder: "fuzz", may_use: &["domain", "import-from", "media", "storage"] },
];

/// Large libraries, each with the few crates that use it.
const USERS: [(&str, &[&str]); 17] = [
    ("async-nats", &["cluster"]),
    ("ractor", &["actors"]),
    ("reqwest", &["actors"]),
    ("sled", &["storage"]),
    ("rmp", &["storage"]),
    ("rmp-serde", &["storage"]),
    ("chacha20poly1305", &["storage"]),
    ("x25519-dalek", &["storage"]),
    ("rustls-native-certs", &["media"]),
    ("anyhow", &["services", "headwater"]),
    ("clap", &["config"]),
    ("prometheus-client", &["services"]),
    ("rcgen", &["node"]),
    ("tower-service", &["server", "rest", "headwater"]),
    ("tracing-subscriber", &["config", "services", "rest", "headwater"]),
    ("warp", &["server", "node", "player", "push", "rest", "route-frame", "headwater"]),
    ("syn", &["resource-derive"]),
];

/// The dependencies of `domain`: data and text, without I/O, waiting or clocks.
const DOMAIN_MAY_USE: [&str; 16] = [
    "bytes",
    "crc32fast",
    "data-encoding",
    "encoding_rs",
    "form_urlencoded",
    "html-escape",
    "icu_normalizer",
    "jiff",
    "memchr",
    "percent-encoding",
    "regex",
    "roxmltree",
    "serde",
    "serde_json",
    "thiserror",
    "uuid",
];

#[test]
fn crates_depend_on_each_other_in_one_direction_only() {
    let mut wrong = Vec::new();
    for rule in &CRATES {
        for (crate_name, section) in dependencies(rule) {
            // The tests of a crate may depend on the crate itself, to enable one of its features.
            let is_internal = CRATES.iter().any(|other| other.name == crate_name);
            if is_internal && crate_name != rule.name && !rule.may_use.contains(&crate_name.as_str()) {
                wrong.push(format!("{} uses {crate_name} ([{section}])", rule.name));
            }
        }
    }
    assert!(wrong.is_empty(), "dependencies that are not allowed: {wrong:#?}\n{LAYERS}");
}

#[test]
fn each_large_library_is_used_by_few_crates() {
    let mut wrong = Vec::new();
    for rule in &CRATES {
        for (crate_name, section) in dependencies(rule) {
            if let Some((_, users)) = USERS.iter().find(|(library, _)| *library == crate_name)
                && !users.contains(&rule.name)
            {
                wrong.push(format!(
                    "{crate_name} is reserved for {users:?}, but {} uses it ([{section}])",
                    rule.name
                ));
            }
            let is_allowed = DOMAIN_MAY_USE.contains(&crate_name.as_str()) || section != "dependencies";
            if rule.name == "domain" && !is_allowed {
                wrong.push(format!("domain uses {crate_name}"));
            }
        }
    }
    for file in rust_files("media/src").into_iter().chain(rust_files("actors/src")) {
        // Serves other processes of the gateway, over streams that are authenticated before, and no clients.
        let is_for_nodes = file.ends_with("media/src/node/server.rs");
        if !file.ends_with("testing.rs") && !is_for_nodes && code_of(&file).contains("hyper::server") {
            wrong.push(format!("{} serves HTTP, which only the crate `server` may do", relative(&file)));
        }
    }
    assert!(wrong.is_empty(), "libraries used by the wrong crate: {wrong:#?}\n{LAYERS}");
}

#[test]
fn http_crates_use_only_items_that_media_re_exports_at_its_root() {
    let crate_root = read(&root().join("media/src/lib.rs"));
    let modules: BTreeSet<&str> =
        crate_root.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let mut wrong = Vec::new();
    for file in HTTP_SOURCES.into_iter().flat_map(rust_files) {
        for (number, line) in code_of(&file).lines().enumerate() {
            for (at, _) in line.match_indices("media::") {
                let begins_a_path =
                    !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
                let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
                let path = &line[at + "media::".len()..];
                let names = match path.strip_prefix('{') {
                    Some(list) => list.split('}').next(),
                    None => path.split(|c| !is_of_name(c)).next(),
                };
                let mut names = names.unwrap_or_default().split(',');
                let names_a_module = names.any(|name| {
                    modules.contains(name.trim().split(|c| !is_of_name(c)).next().unwrap_or_default())
                });
                if begins_a_path && names_a_module {
                    wrong.push(format!("{}:{}: {}", relative(&file), number + 1, line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "modules of media used in HTTP crates: {wrong:#?}\n{LAYERS}");
}

#[test]
fn only_the_actors_crate_names_ractor() {
    for folder in SOURCES.into_iter().filter(|it| *it != "actors/src") {
        for file in rust_files(folder) {
            assert!(
                !read(&file).contains("ractor::"),
                "{} names the actor library\n{LAYERS}",
                relative(&file)
            );
        }
    }
}

#[test]
fn one_file_of_the_store_names_sled() {
    for folder in SOURCES {
        for file in
            rust_files(folder).into_iter().filter(|file| !file.ends_with("storage/src/engine/disk.rs"))
        {
            assert!(!code_of(&file).contains("sled::"), "{} names sled\n{LAYERS}", relative(&file));
        }
    }
}

#[test]
fn domain_and_import_from_are_pure() {
    let forbidden =
        ["async ", ".await", "Instant::now", "SystemTime::now", "std::fs", "std::thread", "TcpStream"];
    let mut wrong = Vec::new();
    // A model that drives a state machine in tests and fuzz targets needs a start time.
    let files = ["domain/src", "import-from/src"].into_iter().flat_map(rust_files);
    for file in files.filter(|file| !file.ends_with("model.rs")) {
        for (number, line) in code_of(&file).lines().enumerate() {
            for word in forbidden {
                if line.contains(word) {
                    wrong.push(format!("{}:{}: {word}", relative(&file), number + 1));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "domain and import-from have no clock, no I/O and no async code; time is an argument: {wrong:#?}"
    );
}

#[test]
fn media_spawns_no_tasks_on_the_current_runtime() {
    for file in rust_files("media/src") {
        if !file.ends_with("testing.rs") && !file.components().any(|part| part.as_os_str() == "testing") {
            let text = code_of(&file);
            assert!(
                !text.contains("tokio::spawn("),
                "{} spawns on the current runtime; media takes a runtime handle instead",
                relative(&file)
            );
        }
    }
}

/// Returns the dependencies of a crate with their section: normal, test, build, and per platform.
fn dependencies(rule: &CrateRule) -> Vec<(String, String)> {
    let path = root().join(rule.folder).join("Cargo.toml");
    let manifest: toml::Table =
        read(&path).parse().unwrap_or_else(|error| panic!("{}: {error}", relative(&path)));
    let mut found = sections(&manifest);
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        found.extend(targets.values().filter_map(toml::Value::as_table).flat_map(sections));
    }
    assert!(!found.is_empty(), "{} has no dependencies; is this the right file?", relative(&path));
    found
}

fn sections(table: &toml::Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
        let Some(crates) = table.get(section).and_then(toml::Value::as_table) else { continue };
        for (name, value) in crates {
            // `name = { package = "…" }` renames a crate; the package name counts.
            let package = value.get("package").and_then(toml::Value::as_str).unwrap_or(name);
            found.push((package.to_owned(), section.to_owned()));
        }
    }
    found
}
