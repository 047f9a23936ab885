//! Code: lints, type names, route summaries and imports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{SOURCES, code_of, every_file, has_extension, is_test_file, read, relative, root, rust_files};

/// The verbs that start a route summary. A new one is added here if no listed verb fits.
const SUMMARY_VERBS: [&str; 34] = [
    "Adds",
    "Assigns",
    "Cancels",
    "Changes",
    "Checks",
    "Counts",
    "Creates",
    "Deletes",
    "Disconnects",
    "Ends",
    "Exports",
    "Generates",
    "Imports",
    "Issues",
    "Lists",
    "Logs",
    "Matches",
    "Merges",
    "Partially",
    "Plays",
    "Redirects",
    "Refreshes",
    "Removes",
    "Renames",
    "Replaces",
    "Replays",
    "Returns",
    "Revokes",
    "Runs",
    "Sets",
    "Starts",
    "Stops",
    "Switches",
    "Updates",
];

#[test]
fn no_lint_is_disabled_without_a_reason() {
    let bare = [concat!("#[", "allow("), concat!("#![", "allow(")];
    for file in every_file().into_iter().filter(|file| has_extension(file, "rs")) {
        let text = read(&file);
        for word in bare {
            assert!(!text.contains(word), "{}: use #[expect(lint, reason = \"…\")]", relative(&file));
        }
    }
}

#[test]
fn no_file_names_a_path_of_the_development_machine() {
    // Split in halves, so that this file does not match.
    let forbidden =
        [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/", "hw"), concat!("/tmp/", "tgt")];
    let mut wrong = Vec::new();
    for file in every_file() {
        for (number, line) in read(&file).lines().enumerate() {
            if forbidden.iter().any(|word| line.contains(word)) {
                wrong.push(format!("{}:{}: {}", relative(&file), number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "lines with paths of the development machine: {wrong:#?}");
}

#[test]
fn doc_comments_contain_no_code_examples() {
    // CI runs no doc tests, so an example would never be compiled. Diagrams are fenced as `text`.
    let mut wrong = Vec::new();
    for file in SOURCES.into_iter().flat_map(rust_files) {
        let mut is_open = false;
        for (number, line) in read(&file).lines().enumerate() {
            let comment = line.trim_start();
            let text =
                comment.strip_prefix("/// ").or_else(|| comment.strip_prefix("//! ")).unwrap_or_default();
            if let Some(language) = text.trim_start().strip_prefix("```") {
                if !is_open && language != "text" {
                    wrong.push(format!("{}:{}", relative(&file), number + 1));
                }
                is_open = !is_open;
            }
        }
    }
    assert!(wrong.is_empty(), "fences in doc comments that are not `text`: {wrong:#?}");
}

#[test]
fn a_public_type_name_has_at_most_two_meanings() {
    let glossary = read(&root().join("docs/glossary.md"));
    let is_explained = |name: &str| {
        glossary.lines().any(|line| {
            line.starts_with('|')
                && line.split('|').nth(1).is_some_and(|it| it.contains(&format!("`{name}`")))
        })
    };
    let mut definitions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in SOURCES.into_iter().flat_map(rust_files).filter(|file| !is_test_module(file)) {
        for (number, line) in code_of(&file).lines().enumerate() {
            if let Some(name) = public_type(line).filter(|name| !name.is_empty()) {
                definitions.entry(name.to_owned()).or_default().push(format!(
                    "{}:{}",
                    relative(&file),
                    number + 1
                ));
            }
        }
    }
    assert!(definitions.len() > 100, "only {} public types found", definitions.len());
    let wrong: Vec<_> =
        definitions.into_iter().filter(|(name, places)| places.len() > 2 && !is_explained(name)).collect();
    assert!(
        wrong.is_empty(),
        "type names with more than two definitions; qualify them, or add a row to docs/glossary.md if they mean the same everywhere: {wrong:#?}"
    );
}

/// Returns the name of the public type that a line defines. Associated types and private types do not count.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(") ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    let (keyword, rest) = rest.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "type", "union"].contains(&keyword);
    is_type.then(|| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default())
}

/// Returns true for modules that are compiled for tests only.
fn is_test_module(file: &Path) -> bool {
    is_test_file(file)
        || file.components().any(|part| ["testing", "testing.rs"].iter().any(|it| part.as_os_str() == *it))
}

#[test]
fn every_route_summary_starts_with_a_verb() {
    let document = rest::openapi();
    let paths = document["paths"].as_object().expect("the document has paths");
    let mut wrong = Vec::new();
    let mut n_summaries = 0;
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().expect("a path has operations") {
            let summary = operation["summary"].as_str().unwrap_or_default();
            n_summaries += 1;
            if !starts_with_a_verb(summary) {
                wrong.push(format!("{method} {path}: {summary:?}"));
            }
        }
    }
    assert!(n_summaries > 50, "only {n_summaries} operations found");
    assert!(wrong.is_empty(), "summaries that do not start with a verb in the third person: {wrong:#?}");
}

fn starts_with_a_verb(summary: &str) -> bool {
    let mut words = summary.split([' ', '.', ',']);
    let first = words.next().unwrap_or_default();
    // "Partially updates" is the only summary that starts with an adverb.
    SUMMARY_VERBS.contains(&first) && (first != "Partially" || words.next() == Some("updates"))
}

#[test]
fn imports_have_one_style() {
    let mut wrong = Vec::new();
    let mut n_imports = 0;
    for file in every_file().into_iter().filter(|file| has_extension(file, "rs")) {
        let text = read(&file);
        let imports = imports(&text);
        n_imports += imports.len();
        wrong.extend(
            import_faults(&imports)
                .into_iter()
                .map(|(line, fault)| format!("{}:{line}: {fault}", relative(&file))),
        );
        if !file.starts_with(root().join("tests")) {
            let code = code_of(&file);
            let code_lines: Vec<&str> = code.lines().collect();
            wrong.extend(
                function_imports(&code_lines)
                    .into_iter()
                    .map(|line| format!("{}:{line}: an import inside a function", relative(&file))),
            );
        }
        if text.contains(concat!("super", "::super")) {
            wrong.push(format!("{}: a path with two `super`; write `crate::…`", relative(&file)));
        }
    }
    assert!(n_imports > 1_000, "only {n_imports} imports found");
    assert!(wrong.is_empty(), "imports: {wrong:#?}");
}

/// A private `use` at the top of a file or module, without attributes.
struct Import<'a> {
    /// Line number, starting at 1.
    line: usize,
    /// Number of the group of lines without a blank line or other code between them.
    block: usize,
    /// Number of the module in the file; 0 at the top.
    module: usize,
    path: &'a str,
}

/// Returns the private imports of a file. Those with attributes are left out, because they depend on features.
fn imports(text: &str) -> Vec<Import<'_>> {
    let mut found = Vec::new();
    let (mut block, mut module, mut offset) = (0, 0, 0);
    let mut is_attribute = false;
    let mut end = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let start = offset;
        offset += line.len();
        let trimmed = line.trim();
        if start < end {
            continue;
        }
        let rest =
            trimmed.split_once("use ").filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
        if let Some((before, rest)) = rest.filter(|(_, rest)| rest.contains("::") || rest.ends_with(';')) {
            let at = start + line.find(rest).unwrap_or_default();
            let length = text[at..].find(';').unwrap_or_default();
            end = at + length;
            // Re-exports may stand between imports and do not count.
            if !is_attribute && length > 0 && before.is_empty() {
                found.push(Import { line: number + 1, block, module, path: &text[at..at + length] });
            }
        } else {
            block += 1;
            module += usize::from(trimmed.ends_with('{'));
        }
        is_attribute = trimmed.starts_with("#[");
    }
    found
}

/// Returns the line and description of each fault.
fn import_faults(imports: &[Import<'_>]) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    let mut prefixes = BTreeSet::new();
    for import in imports {
        let (prefix, names) = match import.path.split_once('{') {
            Some((prefix, names)) => (prefix.trim_end_matches("::"), names),
            None => (import.path.rsplit_once("::").map_or("", |it| it.0), ""),
        };
        if names.contains("::") {
            faults.push((import.line, format!("a path inside braces: use {}", import.path)));
        }
        if !import.path.ends_with('*') && !prefixes.insert((import.module, prefix)) {
            faults.push((import.line, format!("a second `use` of {prefix}")));
        }
    }
    for pair in imports.windows(2).filter(|pair| pair[0].module == pair[1].module) {
        let (before, after) = (origin(pair[0].path), origin(pair[1].path));
        if after < before {
            faults.push((pair[1].line, "the order is std, other crates, own crate".to_owned()));
        } else if (before == after) != (pair[0].block == pair[1].block) {
            faults.push((
                pair[1].line,
                "std, other crates and own crate are blocks with one blank line between".to_owned(),
            ));
        }
    }
    faults
}

/// Returns the block that an import belongs to: std, other crates, own crate.
fn origin(path: &str) -> usize {
    match path.split("::").next().unwrap_or_default() {
        "std" | "core" | "alloc" => 0,
        "crate" | "self" | "super" => 2,
        _ => 1,
    }
}

/// Returns the lines of imports inside functions.
fn function_imports(lines: &[&str]) -> Vec<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_inside_function = |at: usize| {
        let depth = indent(lines[at]);
        let parent = lines[..at].iter().rev().find(|line| !line.trim().is_empty() && indent(line) < depth);
        parent.is_some_and(|line| !line.trim_start().trim_start_matches("pub ").starts_with("mod "))
    };
    let is_conditional = |at: usize| at > 0 && lines[at - 1].trim().starts_with("#[cfg");
    (0..lines.len())
        .filter(|at| lines[*at].starts_with(' ') && lines[*at].trim_start().starts_with("use "))
        .filter(|at| lines[*at].contains("::") && is_inside_function(*at) && !is_conditional(*at))
        .map(|at| at + 1)
        .collect()
}

#[test]
fn the_check_of_imports_finds_every_fault() {
    let faults = |text: &str| import_faults(&imports(text)).len();
    assert_eq!(
        faults("use std::fs;\nuse std::path::Path;\n\nuse a::{B, C};\n\nuse crate::d;\nuse super::e;\n"),
        0
    );
    assert_eq!(faults("use std::fs;\nuse std::io;\n"), 1);
    assert_eq!(faults("use std::{fs, path::Path};\n"), 1);
    assert_eq!(faults("use std::{\n    fs,\n    path::Path,\n};\n"), 1);
    assert_eq!(faults("use std::fs;\nuse a::B;\n"), 1);
    assert_eq!(faults("use std::fs;\n\nuse std::path::Path;\n"), 1);
    assert_eq!(faults("use crate::d;\n\nuse a::B;\n"), 1);
    assert_eq!(function_imports(&["fn f() {", "    use a::B;", "}"]), [2]);
    assert_eq!(function_imports(&["mod m {", "    use a::B;", "}"]), [] as [usize; 0]);
    assert!(starts_with_a_verb("Lists channels.") && starts_with_a_verb("Partially updates a user."));
    assert!(!starts_with_a_verb("Partially a user.") && !starts_with_a_verb("Channels of a user."));
    assert_eq!(public_type("pub(crate) struct Name<T> {"), Some("Name"));
    assert_eq!(public_type("struct Name {"), None);
}

/// Files that create folders without a sync, and why that is right.
const UNSYNCED_FOLDERS: [(&str, &str); 14] = [
    ("actors/src/plugins/environment.rs", "packages that can be installed again"),
    ("actors/src/plugins/groups.rs", "groups of processes, which the kernel keeps"),
    ("actors/src/plugins/log.rs", "a log, whose lines are not synced"),
    ("actors/src/recorder/after/comskip.rs", "files of a program while it runs"),
    ("actors/src/recorder/after/remux.rs", "files of a program while it runs"),
    ("actors/src/vod/disk.rs", "a cache"),
    ("services/src/logo_cache.rs", "a cache"),
    ("player/src/screen/clips.rs", "a cache"),
    ("services/src/strm_export/folder.rs", "the next export writes everything again"),
    ("storage/src/engine/folder.rs", "copies of databases, which are synced whole before they count"),
    ("storage/src/engine/memory_copy.rs", "a folder of links to a copy in memory"),
    ("storage/src/folders.rs", "the function that syncs"),
    ("storage/src/plugin_files/archive.rs", "an unpacked plugin, which is synced whole before it counts"),
    ("storage/src/store.rs", "temporary stores"),
];

/// A power cut took a new folder, and with it a back-up that was confirmed.
#[test]
fn folders_of_data_are_created_by_the_function_that_syncs_them() {
    let creates = |file: &Path| ["create_dir", "DirBuilder::"].iter().any(|it| code_of(file).contains(it));
    let found: Vec<_> = SOURCES.into_iter().flat_map(rust_files).filter(|it| creates(it)).collect();
    let found: Vec<_> = found.iter().map(|it| relative(it)).collect();
    let wrong: Vec<_> =
        found.iter().filter(|it| UNSYNCED_FOLDERS.iter().all(|(path, _)| path != it)).collect();
    assert!(wrong.is_empty(), "use `storage::create_folder`, or add a reason to the table: {wrong:#?}");
}
