//! The rules of the house that no compiler knows, as tests: who may depend on whom, which library lives in which
//! room, what is absent on purpose, and that the documents are true where a program can tell.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The picture that the first two tests hold; printed with every failure of theirs.
const PICTURE: &str = "
        domain        media          two leaves that do not know each other
        ▲  ▲  ▲        ▲  ▲
  storage◄─┼────actors─┘  │          storage: domain; the only home of sled
        ▲  │      ▲       │          actors: domain, media, storage; the only home of ractor and reqwest
        └──┴──── src ─────┘          src: actors, storage, domain, and of media only what its crate root re-exports; the only home of warp
                  ▲
           tests, benches            fuzz → domain, media, storage

A new edge is a decision: write a page in docs/decisions, then change tests/it/tidy.rs.
";

/// A crate of ours: its name in Cargo, its folder, and the rooms it may know.
struct Room {
    name: &'static str,
    folder: &'static str,
    may_know: &'static [&'static str],
}

const ROOMS: [Room; 6] = [
    Room { name: "domain", folder: "domain", may_know: &[] },
    Room { name: "media", folder: "media", may_know: &[] },
    Room { name: "storage", folder: "storage", may_know: &["domain"] },
    Room { name: "actors", folder: "actors", may_know: &["domain", "media", "storage"] },
    Room { name: "headwater", folder: ".", may_know: &["actors", "domain", "media", "storage"] },
    Room { name: "fuzz", folder: "fuzz", may_know: &["domain", "media", "storage"] },
];

/// Libraries that shape the code around them, each with its one room.
const ONE_ROOM_ONLY: [(&str, &str); 13] = [
    ("ractor", "actors"),
    ("reqwest", "actors"),
    ("sled", "storage"),
    ("rmp-serde", "storage"),
    ("chacha20poly1305", "storage"),
    ("tokio-rustls", "media"),
    ("rustls-native-certs", "media"),
    ("anyhow", "headwater"),
    ("clap", "headwater"),
    ("prometheus-client", "headwater"),
    ("tower-service", "headwater"),
    ("tracing-subscriber", "headwater"),
    ("warp", "headwater"),
];

/// All that the room of the rules may use: data and text, nothing that waits, reads or asks the time.
const DOMAIN_MAY_USE: [&str; 6] = ["memchr", "regex", "serde", "serde_json", "thiserror", "uuid"];

#[test]
fn the_rooms_know_each_other_in_one_direction_only() {
    let mut wrong = Vec::new();
    for room in &ROOMS {
        for (crate_name, section) in dependencies(room) {
            // A room's tests may name the room itself, to switch a feature of its own on.
            let is_ours = ROOMS.iter().any(|other| other.name == crate_name);
            if is_ours && crate_name != room.name && !room.may_know.contains(&crate_name.as_str()) {
                wrong.push(format!("{} knows {crate_name} ([{section}])", room.name));
            }
        }
    }
    assert!(wrong.is_empty(), "edges that are not in the picture: {wrong:#?}\n{PICTURE}");
}

#[test]
fn each_heavy_library_has_one_room() {
    let mut wrong = Vec::new();
    for room in &ROOMS {
        for (crate_name, section) in dependencies(room) {
            if let Some((_, home)) = ONE_ROOM_ONLY.iter().find(|(heavy, _)| *heavy == crate_name)
                && *home != room.name
            {
                wrong.push(format!("{crate_name} belongs to {home}, but is in {} ([{section}])", room.name));
            }
            let is_light = DOMAIN_MAY_USE.contains(&crate_name.as_str()) || section != "dependencies";
            if room.name == "domain" && !is_light {
                wrong.push(format!("domain uses {crate_name}"));
            }
        }
    }
    for file in rust_files("media/src").into_iter().chain(rust_files("actors/src")) {
        if !file.ends_with("testing.rs") && code_of(&file).contains("hyper::server") {
            wrong.push(format!("{} serves HTTP, which only src does", shown(&file)));
        }
    }
    assert!(wrong.is_empty(), "libraries outside their room: {wrong:#?}\n{PICTURE}");
}

#[test]
fn src_uses_only_items_that_media_re_exports_at_its_root() {
    let names_of_media = read(&root().join("media/src/lib.rs"));
    let modules: BTreeSet<&str> =
        names_of_media.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let mut wrong = Vec::new();
    for file in rust_files("src") {
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
                    wrong.push(format!("{}:{}: {}", shown(&file), number + 1, line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "modules of media used in src: {wrong:#?}\n{PICTURE}");
}

#[test]
fn no_actor_library_is_named_outside_the_room_of_actors() {
    for folder in ["src", "domain/src", "media/src", "storage/src"] {
        for file in rust_files(folder) {
            assert!(!read(&file).contains("ractor::"), "{} names the actor library\n{PICTURE}", shown(&file));
        }
    }
}

#[test]
fn one_file_of_the_store_names_its_database() {
    for folder in ["src", "domain/src", "media/src", "actors/src", "storage/src"] {
        for file in
            rust_files(folder).into_iter().filter(|file| !file.ends_with("storage/src/engine/disk.rs"))
        {
            assert!(!code_of(&file).contains("sled::"), "{} names sled\n{PICTURE}", shown(&file));
        }
    }
}

#[test]
fn the_rules_are_pure() {
    let forbidden =
        ["async ", ".await", "Instant::now", "SystemTime::now", "std::fs", "std::thread", "TcpStream"];
    let mut wrong = Vec::new();
    // A model that drives a machine in tests and under the fuzzer needs some instant to begin with.
    for file in rust_files("domain/src").into_iter().filter(|file| !file.ends_with("model.rs")) {
        for (number, line) in code_of(&file).lines().enumerate() {
            for word in forbidden {
                if line.contains(word) {
                    wrong.push(format!("{}:{}: {word}", shown(&file), number + 1));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "domain has no clock, no I/O and waits for nothing; time is an argument: {wrong:#?}"
    );
}

#[test]
fn the_bytes_start_no_task_of_their_own() {
    for file in rust_files("media/src") {
        if !file.ends_with("testing.rs") && !file.components().any(|part| part.as_os_str() == "testing") {
            let text = code_of(&file);
            assert!(
                !text.contains("tokio::spawn("),
                "{} spawns where it happens to run; media is given a runtime's handle instead",
                shown(&file)
            );
        }
    }
}

#[test]
fn no_lint_is_silenced_without_a_reason() {
    let bare = [concat!("#[", "allow("), concat!("#![", "allow(")];
    for file in every_file().into_iter().filter(|file| has_extension(file, "rs")) {
        let text = read(&file);
        for word in bare {
            assert!(!text.contains(word), "{}: use #[expect(lint, reason = \"…\")]", shown(&file));
        }
    }
}

#[test]
fn the_project_speaks_of_itself_alone() {
    // Written in halves, so that this file does not find itself.
    let forbidden =
        [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/", "hw"), concat!("/tmp/", "tgt")];
    let mut wrong = Vec::new();
    for file in every_file() {
        for (number, line) in read(&file).lines().enumerate() {
            if forbidden.iter().any(|word| line.contains(word)) {
                wrong.push(format!("{}:{}: {}", shown(&file), number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "lines that name the machine they were written on: {wrong:#?}");
}

#[test]
fn every_link_in_the_documents_is_alive() {
    let mut dead = Vec::new();
    for page in pages() {
        for link in links(&page) {
            if let Err(reason) = follow(&page, &link) {
                dead.push(format!("{}: ({link}): {reason}", shown(&page)));
            }
        }
    }
    assert!(dead.is_empty(), "dead links: {dead:#?}");
}

#[test]
fn every_document_is_reached_from_the_readme() {
    let mut seen = BTreeSet::new();
    let mut waiting = VecDeque::from([root().join("README.md")]);
    while let Some(page) = waiting.pop_front() {
        if !seen.insert(page.clone()) || !has_extension(&page, "md") {
            continue;
        }
        waiting.extend(links(&page).iter().filter_map(|link| follow(&page, link).ok().flatten()));
    }
    let lost: Vec<_> =
        pages().into_iter().filter(|page| !seen.contains(page)).map(|page| shown(&page)).collect();
    assert!(lost.is_empty(), "documents that no link leads to: {lost:#?}");
}

#[test]
fn every_path_on_the_map_exists() {
    let map = root().join("docs/architecture.md");
    let mut gone = Vec::new();
    for word in code_words(&read(&map)) {
        let looks_like_a_path = word.contains('/')
            && !word.starts_with('/')
            && !word.contains("://")
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
        if looks_like_a_path && !root().join(&word).exists() {
            gone.push(word);
        }
    }
    assert!(gone.is_empty(), "docs/architecture.md names what is not there: {gone:#?}");
}

#[test]
fn every_setting_and_every_metric_is_explained() {
    let page = read(&root().join("docs/operating.md"));
    let defaults = serde_json::to_value(headwater::config::Config::default()).unwrap();
    let missing: Vec<_> =
        keys(&defaults).into_iter().filter(|key| !page.contains(&format!("| `{key}` |"))).collect();
    assert!(missing.is_empty(), "settings that docs/operating.md does not explain: {missing:#?}");

    let source = read(&root().join("src/metrics.rs"));
    let explained: Vec<String> = code_words(&page);
    let explained: Vec<_> = explained.iter().filter_map(|word| word.strip_prefix("headwater_")).collect();
    for name in &explained {
        let name = name.trim_end_matches("_total");
        let is_there = [name, name.trim_end_matches("_bytes"), name.trim_end_matches("_seconds")]
            .iter()
            .any(|name| source.contains(&format!("\"{name}\"")));
        assert!(is_there, "docs/operating.md explains headwater_{name}, which is not there");
    }
    let written = source.lines().filter_map(|line| line.trim().strip_prefix("page.")?.split('"').nth(1));
    for name in written {
        let is_explained = explained.iter().any(|it| it.starts_with(name));
        assert!(is_explained, "docs/operating.md does not explain the metric {name}");
    }
}

#[test]
fn dashboards_and_alerts_ask_for_metrics_that_there_are() {
    let page = read(&root().join("docs/operating.md"));
    let explained: BTreeSet<String> = code_words(&page).into_iter().collect();
    for file in ["docs/deploy/grafana.json", "docs/deploy/alerts.yml"] {
        let text = read(&root().join(file));
        let is_of_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let words = text.split(|it: char| !is_of_name(it)).filter(|it| it.starts_with("headwater_"));
        let mut n_asked = 0;
        for word in words {
            n_asked += 1;
            let name = word.strip_suffix("_bucket").unwrap_or(word);
            assert!(
                explained.contains(name),
                "{file} asks for {word}, which docs/operating.md does not explain"
            );
        }
        assert!(n_asked > 5, "{file} asks for nothing");
    }
    let dashboard = read(&root().join("docs/deploy/grafana.json"));
    serde_json::from_str::<serde_json::Value>(&dashboard).expect("the dashboard is JSON");
}

/// The settings as they are written, such as `engine.stall_timeout`.
fn keys(value: &serde_json::Value) -> Vec<String> {
    let serde_json::Value::Object(members) = value else { return Vec::new() };
    members
        .iter()
        .flat_map(|(name, value)| match value.is_object() {
            true => keys(value).into_iter().map(|key| format!("{name}.{key}")).collect(),
            false => vec![name.clone()],
        })
        .collect()
}

#[test]
fn every_choice_is_held_by_a_test_that_exists() {
    let tests: BTreeSet<String> = every_file()
        .into_iter()
        .filter(|file| has_extension(file, "rs"))
        .flat_map(|file| functions(&read(&file)))
        .collect();
    let choices = root().join("docs/choices");
    let areas: Vec<_> = pages()
        .into_iter()
        .filter(|page| page.starts_with(&choices) && !page.ends_with("README.md"))
        .collect();
    assert!(!areas.is_empty(), "docs/choices has no pages");
    let mut wrong = Vec::new();
    for page in areas {
        let mut n_rows = 0;
        for line in read(&page).lines() {
            // Rows of the table, without its head and the line of dashes below it.
            if !line.starts_with('|') || line.starts_with("|-") || line.starts_with("| Case |") {
                continue;
            }
            n_rows += 1;
            let last_cell = line.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap_or_default();
            let named = code_words(last_cell);
            if named.is_empty() {
                wrong.push(format!("{}: names no test: {line}", shown(&page)));
            }
            wrong.extend(
                named
                    .into_iter()
                    .filter(|name| !tests.contains(name))
                    .map(|name| format!("{}: there is no test {name}", shown(&page))),
            );
        }
        if n_rows == 0 {
            wrong.push(format!("{} has no rows", shown(&page)));
        }
    }
    assert!(wrong.is_empty(), "docs/choices: {wrong:#?}");
}

#[test]
fn every_promise_is_held_by_a_test_and_every_number_is_explained() {
    let explained: BTreeSet<String> = read(&root().join("docs/promises.md"))
        .lines()
        .filter(|line| line.starts_with("| T-"))
        .flat_map(promises)
        .collect();
    let held: BTreeSet<String> = every_file()
        .into_iter()
        .filter(|file| has_extension(file, "rs"))
        .flat_map(|file| {
            read(&file).lines().filter(|line| line.contains("//")).flat_map(promises).collect::<Vec<_>>()
        })
        .collect();
    let broken: Vec<_> = explained.difference(&held).collect();
    assert!(broken.is_empty(), "promises of docs/promises.md that no test says it holds: {broken:?}");
    let unknown: Vec<_> = held.difference(&explained).collect();
    assert!(unknown.is_empty(), "numbers that docs/promises.md does not explain: {unknown:?}");
}

/// The numbers of promises in a line: a T, a dash, a word, a full stop, digits.
fn promises(line: &str) -> Vec<String> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.'))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| {
            word.strip_prefix("T-").and_then(|rest| rest.split_once('.')).is_some_and(|(class, number)| {
                class.chars().all(|c| c.is_ascii_lowercase()) && number.parse::<u32>().is_ok()
            })
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn decisions_are_numbered_and_say_what_would_change_our_mind() {
    let mut pages: Vec<_> =
        pages().into_iter().filter(|page| page.starts_with(root().join("docs/decisions"))).collect();
    pages.sort();
    assert!(!pages.is_empty(), "docs/decisions is empty");
    for (index, page) in pages.iter().enumerate() {
        let name = page.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        assert!(name.starts_with(&format!("{:04}-", index + 1)), "{name} is not number {}", index + 1);
        for heading in ["## Context", "## Choice", "## What it costs", "## What would change our mind"] {
            assert!(read(page).contains(heading), "{name} has no section {heading:?}");
        }
    }
}

// Reading Cargo files.

/// Every crate that a room names, with the section it stands in: normal, test, build, and per platform.
fn dependencies(room: &Room) -> Vec<(String, String)> {
    let path = root().join(room.folder).join("Cargo.toml");
    let manifest: toml::Table =
        read(&path).parse().unwrap_or_else(|error| panic!("{}: {error}", shown(&path)));
    let mut found = sections(&manifest);
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        found.extend(targets.values().filter_map(toml::Value::as_table).flat_map(sections));
    }
    assert!(
        !found.is_empty(),
        "{} names no dependency at all; is this test reading the right file?",
        shown(&path)
    );
    found
}

fn sections(table: &toml::Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
        let Some(crates) = table.get(section).and_then(toml::Value::as_table) else { continue };
        for (name, value) in crates {
            // `name = { package = "…" }` renames; what counts is the crate behind it.
            let package = value.get("package").and_then(toml::Value::as_str).unwrap_or(name);
            found.push((package.to_owned(), section.to_owned()));
        }
    }
    found
}

// Reading code.

/// The code of a file: without comments, and without the tests at its end, which have more freedom.
fn code_of(file: &Path) -> String {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_in_tests = file.components().any(|part| part.as_os_str() == "tests");
    if is_in_tests || stem == "tests" || stem.ends_with("_tests") {
        return String::new();
    }
    let text = read(file);
    let end = ["#[cfg(test)]\nmod ", "#[cfg(test)]\n#["].iter().filter_map(|mark| text.find(mark)).min();
    let code = &text[..end.unwrap_or(text.len())];
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The names of all functions in a file, those made by a macro such as proptest's included.
fn functions(text: &str) -> Vec<String> {
    text.match_indices("fn ")
        .map(|(at, word)| {
            text[at + word.len()..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect::<String>()
        })
        .filter(|name| !name.is_empty())
        .collect()
}

fn rust_files(folder: &str) -> Vec<PathBuf> {
    let folder = root().join(folder);
    let files: Vec<_> = every_file()
        .into_iter()
        .filter(|file| file.starts_with(&folder) && has_extension(file, "rs"))
        .collect();
    assert!(!files.is_empty(), "no Rust file in {}", shown(&folder));
    files
}

// Reading documents.

/// The pages that people read: those at the top of the house, and all below `docs`.
fn pages() -> Vec<PathBuf> {
    let (top, docs) = (root(), root().join("docs"));
    every_file()
        .into_iter()
        .filter(|file| has_extension(file, "md") && (file.parent() == Some(&top) || file.starts_with(&docs)))
        .collect()
}

/// The targets of all `[text](target)` links outside code.
fn links(page: &Path) -> Vec<String> {
    let text = without_code(&read(page));
    let mut found = Vec::new();
    for (at, mark) in text.match_indices("](") {
        if let Some(end) = text[at..].find(')') {
            found.push(text[at + mark.len()..at + end].to_owned());
        }
    }
    found
}

/// Where a link of a page leads: a file of ours, or `None` for the world outside, which a test cannot visit.
fn follow(page: &Path, link: &str) -> Result<Option<PathBuf>, String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(None);
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let file = match path {
        "" => page.to_owned(),
        _ => tidied(&page.parent().unwrap_or(page).join(path)),
    };
    if !file.exists() {
        return Err(format!("{} does not exist", shown(&file)));
    }
    if !anchor.is_empty() && !anchors(&read(&file)).contains_key(anchor) {
        return Err(format!("{} has no heading #{anchor}", shown(&file)));
    }
    Ok(Some(file))
}

/// The anchors that a page's headings make, as the usual Markdown viewers build them.
fn anchors(text: &str) -> BTreeMap<String, usize> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for line in without_fences(text).lines().filter(|line| line.starts_with('#')) {
        let slug: String = line
            .trim_start_matches('#')
            .trim()
            .to_lowercase()
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            })
            .collect();
        let n_before = *found.entry(slug.clone()).and_modify(|n| *n += 1).or_default();
        if n_before > 0 {
            found.insert(format!("{slug}-{n_before}"), 0);
        }
    }
    found
}

/// What stands between single backticks, outside of fenced blocks.
fn code_words(text: &str) -> Vec<String> {
    without_fences(text)
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

fn without_fences(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

fn without_code(text: &str) -> String {
    without_fences(text)
        .lines()
        .map(|line| line.split('`').step_by(2).collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n")
}

// Files.

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every text file that belongs to the project: no build output, no fuzzing finds, no data.
fn every_file() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", shown(&folder))).flatten()
        {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let is_generated = name == ".git"
                || (name.starts_with("target") && path.is_dir())
                || ["artifacts", "corpus", "coverage", "data"].contains(&name.as_str());
            if is_generated {
                continue;
            }
            match path.is_dir() {
                true => folders.push(path),
                false if fs::read(&path).is_ok_and(|bytes| std::str::from_utf8(&bytes).is_ok()) => {
                    found.push(path)
                }
                false => {}
            }
        }
    }
    found.sort();
    found
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", shown(file)))
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|found| found == extension)
}

/// A path as one reads it from the root of the project.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// A path without `.` and `..`, whether it exists or not.
fn tidied(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts
}
