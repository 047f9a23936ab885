//! Documents: links, paths, settings, metrics, choices, promises and decisions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{SOURCES, every_file, has_extension, read, relative, root};

#[test]
fn every_link_in_the_documents_works() {
    let mut dead = Vec::new();
    for page in pages() {
        for link in links(&page) {
            if let Err(reason) = resolve(&page, &link) {
                dead.push(format!("{}: ({link}): {reason}", relative(&page)));
            }
        }
    }
    assert!(dead.is_empty(), "dead links: {dead:#?}");
}

#[test]
fn every_document_is_linked_from_the_readme() {
    let mut visited = BTreeSet::new();
    let mut queue = VecDeque::from([root().join("README.md")]);
    while let Some(page) = queue.pop_front() {
        if !visited.insert(page.clone()) || !has_extension(&page, "md") {
            continue;
        }
        queue.extend(links(&page).iter().filter_map(|link| resolve(&page, link).ok().flatten()));
    }
    let unlinked: Vec<_> =
        pages().into_iter().filter(|page| !visited.contains(page)).map(|page| relative(&page)).collect();
    assert!(unlinked.is_empty(), "documents without a link to them: {unlinked:#?}");
}

#[test]
fn every_path_in_the_architecture_exists() {
    let page = root().join("docs/architecture.md");
    let mut missing = Vec::new();
    for word in code_words(&read(&page)) {
        let looks_like_a_path = word.contains('/')
            && !word.starts_with('/')
            && !word.contains("://")
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
        if looks_like_a_path && !root().join(&word).exists() {
            missing.push(word);
        }
    }
    assert!(missing.is_empty(), "docs/architecture.md names paths that do not exist: {missing:#?}");
}

#[test]
fn every_folder_of_a_crate_is_in_the_architecture() {
    let listed = code_words(&read(&root().join("docs/architecture.md")));
    let mut missing = Vec::new();
    for source in SOURCES {
        let entries = fs::read_dir(root().join(source)).unwrap();
        for folder in entries.flatten().map(|it| it.path()).filter(|it| it.is_dir()) {
            let folder = format!("{}/", relative(&folder));
            if !listed.iter().any(|word| word.starts_with(&folder)) {
                missing.push(folder);
            }
        }
    }
    assert!(missing.is_empty(), "docs/architecture.md does not name these folders: {missing:#?}");
}

#[test]
fn every_step_of_a_flow_names_functions_in_their_order() {
    let page = read(&root().join("docs/architecture.md"));
    let (_, flows) = page.split_once("\n## Five flows\n").expect("the page has the flows");
    let flows = flows.split("\n## ").next().unwrap_or_default();
    let mut wrong = Vec::new();
    let mut n_functions = 0;
    for flow in flows.split("\n### ").skip(1) {
        let mut files = BTreeSet::new();
        for step in flow.lines().filter(|line| line.starts_with(|it: char| it.is_ascii_digit())) {
            let words = code_words(step);
            let (file, named) = words.split_first().expect("a step begins with its file");
            if !files.insert(file.clone()) {
                wrong.push(format!("{file} occurs twice in one flow"));
            }
            let text = read(&root().join(file));
            let mut from = 0;
            for function in named.iter().filter_map(|word| word.strip_suffix("()")) {
                n_functions += 1;
                let name = function.rsplit("::").next().unwrap_or(function);
                let at = [format!("fn {name}("), format!("fn {name}<")]
                    .iter()
                    .filter_map(|declaration| text[from..].find(declaration.as_str()))
                    .min();
                match at {
                    Some(at) => from += at,
                    None => wrong.push(format!("{file} has no {name} below the function named before it")),
                }
            }
        }
    }
    assert!(n_functions > 50, "the flows name only {n_functions} functions");
    assert!(wrong.is_empty(), "docs/architecture.md: {wrong:#?}");
}

#[test]
fn every_setting_and_every_metric_is_documented() {
    let page = read(&root().join("docs/operating.md"));
    let defaults = serde_json::to_value(config::Config::default()).unwrap();
    let existing: BTreeSet<String> = keys(&defaults).into_iter().collect();
    let explained: BTreeSet<String> = first_cells(section(&page, "Settings"))
        .filter_map(|it| Some(it.strip_prefix('`')?.strip_suffix('`')?.to_owned()))
        .collect();
    assert_eq!(explained, existing, "the settings that docs/operating.md explains, and those that exist");

    let source = read(&root().join("services/src/metrics.rs"));
    let explained: Vec<String> = code_words(&page);
    let explained: Vec<_> = explained.iter().filter_map(|word| word.strip_prefix("headwater_")).collect();
    for name in &explained {
        let name = name.trim_end_matches("_total");
        let exists = [name, name.trim_end_matches("_bytes"), name.trim_end_matches("_seconds")]
            .iter()
            .any(|name| source.contains(&format!("\"{name}\"")));
        assert!(exists, "docs/operating.md explains headwater_{name}, which does not exist");
    }
    let written = source.lines().filter_map(|line| line.trim().strip_prefix("page.")?.split('"').nth(1));
    for name in written {
        let is_explained = explained.iter().any(|it| it.starts_with(name));
        assert!(is_explained, "docs/operating.md does not explain the metric {name}");
    }
}

#[test]
fn the_status_codes_of_a_stream_address_are_those_of_its_schema() {
    let page = read(&root().join("docs/operating.md"));
    let explained: BTreeSet<String> = first_cells(section(&page, "Answers on a stream address"))
        .filter(|it| it.bytes().all(|it| it.is_ascii_digit()))
        .map(str::to_owned)
        .collect();
    let schema: serde_json::Value = serde_json::from_str(&read(&root().join("docs/openapi.json"))).unwrap();
    let described = &schema["paths"]["/proxy/ts/stream/{target}"]["get"]["responses"];
    // Every address can answer these.
    let general = ["400", "431", "500"];
    let described = described.as_object().unwrap().keys().filter(|it| !general.contains(&it.as_str()));
    assert_eq!(explained, described.cloned().collect());
}

/// Returns the text between a heading of the second level and the next one of any level.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) =
        page.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    rest.split_once("\n#").map_or(rest, |(section, _)| section)
}

/// Returns the first cell of each row of the tables in a text.
fn first_cells(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix('|')?.split('|').next()).map(str::trim)
}

#[test]
fn dashboards_and_alerts_use_existing_metrics() {
    let page = read(&root().join("docs/operating.md"));
    let explained: BTreeSet<String> = code_words(&page).into_iter().collect();
    for file in ["docs/deploy/grafana.json", "docs/deploy/alerts.yml"] {
        let text = read(&root().join(file));
        let is_of_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let words = text.split(|it: char| !is_of_name(it)).filter(|it| it.starts_with("headwater_"));
        let mut n_used = 0;
        for word in words {
            n_used += 1;
            let name = word.strip_suffix("_bucket").unwrap_or(word);
            assert!(explained.contains(name), "{file} uses {word}, which docs/operating.md does not explain");
        }
        assert!(n_used > 5, "{file} uses too few metrics");
    }
    let dashboard = read(&root().join("docs/deploy/grafana.json"));
    serde_json::from_str::<serde_json::Value>(&dashboard).expect("the dashboard is JSON");
}

/// Returns the keys of the settings, such as `engine.stall_timeout`.
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
fn every_choice_is_covered_by_a_test() {
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
            // Rows of the table, without its header.
            if !line.starts_with('|') || line.starts_with("|-") || line.starts_with("| Case |") {
                continue;
            }
            n_rows += 1;
            let last_cell = line.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap_or_default();
            let named = code_words(last_cell);
            if named.is_empty() {
                wrong.push(format!("{}: names no test: {line}", relative(&page)));
            }
            wrong.extend(
                named
                    .into_iter()
                    .filter(|name| !tests.contains(name))
                    .map(|name| format!("{}: there is no test {name}", relative(&page))),
            );
        }
        if n_rows == 0 {
            wrong.push(format!("{} has no rows", relative(&page)));
        }
    }
    assert!(wrong.is_empty(), "docs/choices: {wrong:#?}");
}

#[test]
fn every_promise_is_covered_by_a_test_and_every_number_is_documented() {
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
    assert!(broken.is_empty(), "promises of docs/promises.md that no test covers: {broken:?}");
    let unknown: Vec<_> = held.difference(&explained).collect();
    assert!(unknown.is_empty(), "numbers that are missing in docs/promises.md: {unknown:?}");
}

/// Returns the numbers of promises in a line: a T, a dash, a word, a full stop, digits.
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
fn decisions_are_numbered_and_have_all_sections() {
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

/// Returns the names of all functions in a file, including those in macros such as `proptest!`.
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

/// Returns the documents: Markdown files at the top level and below `docs`.
fn pages() -> Vec<PathBuf> {
    let (top, docs) = (root(), root().join("docs"));
    every_file()
        .into_iter()
        .filter(|file| has_extension(file, "md") && (file.parent() == Some(&top) || file.starts_with(&docs)))
        .collect()
}

/// Returns the targets of all `[text](target)` links outside code.
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

/// Resolves a link to a file of the project, or to `None` if it is external and cannot be checked.
fn resolve(page: &Path, link: &str) -> Result<Option<PathBuf>, String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(None);
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let file = match path {
        "" => page.to_owned(),
        _ => normalized(&page.parent().unwrap_or(page).join(path)),
    };
    if !file.exists() {
        return Err(format!("{} does not exist", relative(&file)));
    }
    if !anchor.is_empty() && !anchors(&read(&file)).contains_key(anchor) {
        return Err(format!("{} has no heading #{anchor}", relative(&file)));
    }
    Ok(Some(file))
}

/// Returns the anchors of the headings, as common Markdown viewers build them.
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

/// Returns the texts between single backticks outside of fenced blocks.
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

/// Removes `.` and `..` from a path that may not exist.
fn normalized(path: &Path) -> PathBuf {
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
