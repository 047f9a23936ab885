//! Circles of files that import each other, found in the text of each crate.
//!
//! A file imports another one if it names an item that the other one defines, in a `use` or in a path. A re-export is
//! followed to the definition, so that the front page of a folder imports nothing by re-exporting its files. Unit tests do
//! not count.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::{is_test_file, read, relative, root, rust_files};

/// The largest circle that nobody has to cut: larger ones are read as one file, whatever their number of files.
const CIRCLE_FILES_MAX: usize = 5;

#[test]
fn no_circle_of_imports_has_more_than_five_files() {
    let mut wrong = Vec::new();
    for folder in source_folders() {
        let code = Code::read(&folder);
        for circle in code.circles().iter().filter(|it| it.len() > CIRCLE_FILES_MAX) {
            wrong.push(format!("{folder}: a circle of {} files:\n{}", circle.len(), code.describe(circle)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn circles_are_found_through_re_exports_and_paths() {
    let files = [
        ("", "mod a; pub mod b; pub use b::Thing; #[cfg(test)] mod tests { use crate::b::c::made; }"),
        ("a", "use crate::Thing; // crate::b::c\nfn f(_: Thing) { \"crate::b::c::x\"; }"),
        ("b", "mod c; pub struct Thing; fn g() { c::made() }"),
        ("b::c", "use super::{Thing as Other, super::a}; fn made() -> Other { a::f() }"),
    ];
    let files = files.map(|(module, text)| (module_path(module), text.to_owned()));
    let code = Code::new(files.into_iter().collect());
    let circles = code.circles();
    assert_eq!(circles, [["a", "b", "b::c"].map(module_path).to_vec()]);
    assert_eq!(code.describe(&circles[0]), "  a -> b\n  b -> b::c\n  b::c -> a, b\n");
}

/// The path of a module inside its crate; empty for the root.
type ModulePath = Vec<String>;

fn module_path(text: &str) -> ModulePath {
    text.split("::").filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// Returns the folders of source code of all crates of the workspace.
fn source_folders() -> BTreeSet<String> {
    let manifests = super::every_file().into_iter().filter(|it| it.ends_with("Cargo.toml"));
    let folders = manifests.map(|it| it.with_file_name("src")).filter(|it| it.join("lib.rs").is_file());
    folders.map(|it| relative(&it)).collect()
}

/// The statements of one file about others.
#[derive(Default)]
struct FileImports {
    /// Imported names, and paths that are written out: what is used here.
    used: Vec<ModulePath>,
    /// The imports of this file, by the names that they have here.
    names: HashMap<String, ModulePath>,
    /// The names among them that others may use.
    re_exported: BTreeSet<String>,
}

struct Code {
    files: BTreeMap<ModulePath, FileImports>,
}

impl Code {
    fn read(folder: &str) -> Self {
        let is_code = |file: &Path| !is_test_file(file) && !relative(file).contains("testing");
        let files = rust_files(folder).into_iter().filter(|it| is_code(it));
        let texts = files.filter_map(|file| {
            let inner = file.strip_prefix(root().join(folder)).ok()?.with_extension("");
            let mut path: ModulePath = inner.iter().map(|it| it.to_string_lossy().into_owned()).collect();
            if path == ["main"] {
                return None;
            }
            if path == ["lib"] || path.last().is_some_and(|it| it == "mod") {
                path.pop();
            }
            Some((path, read(&file)))
        });
        Self::new(texts.collect())
    }

    fn new(texts: BTreeMap<ModulePath, String>) -> Self {
        let modules: BTreeSet<_> = texts.keys().cloned().collect();
        let files = texts.iter().map(|(module, text)| (module.clone(), imports(module, text, &modules)));
        Self { files: files.collect() }
    }

    /// Returns the file that defines an item, given its path from the root of the crate.
    fn definition(&self, item: &[String], n_followed: usize) -> Option<ModulePath> {
        if self.files.contains_key(item) {
            return Some(item.to_vec());
        }
        let length = (0..item.len()).rev().find(|it| self.files.contains_key(&item[..*it]))?;
        let (module, rest) = item.split_at(length);
        let file = &self.files[module];
        match file.names.get(&rest[0]).filter(|_| file.re_exported.contains(&rest[0]) && n_followed < 10) {
            Some(origin) => self.definition(&[origin, &rest[1..]].concat(), n_followed + 1),
            None => Some(module.to_vec()),
        }
    }

    fn imported_files(&self, module: &ModulePath) -> BTreeSet<ModulePath> {
        let used = self.files[module].used.iter();
        // A module that is imported is used where one of its items is named.
        let items = used.filter(|it| !self.files.contains_key(*it));
        items.filter_map(|it| self.definition(it, 0)).filter(|it| it != module).collect()
    }

    /// Returns the groups of files in which each imports each other, directly or through others.
    fn circles(&self) -> Vec<Vec<ModulePath>> {
        let mut reached: BTreeMap<&ModulePath, BTreeSet<ModulePath>> = BTreeMap::new();
        let direct: BTreeMap<_, _> = self.files.keys().map(|it| (it, self.imported_files(it))).collect();
        for module in self.files.keys() {
            let (mut found, mut open) = (BTreeSet::new(), vec![module]);
            while let Some(next) = open.pop() {
                for imported in &direct[next] {
                    if found.insert(imported.clone()) {
                        open.push(imported);
                    }
                }
            }
            reached.insert(module, found);
        }
        let mut circles: BTreeSet<Vec<ModulePath>> = BTreeSet::new();
        for (module, found) in &reached {
            if found.contains(*module) {
                circles.insert(found.iter().filter(|it| reached[it].contains(*module)).cloned().collect());
            }
        }
        circles.into_iter().collect()
    }

    fn describe(&self, circle: &[ModulePath]) -> String {
        let line = |module: &ModulePath| {
            let imported = self.imported_files(module).into_iter().filter(|it| circle.contains(it));
            let imported: Vec<_> = imported.map(|it| it.join("::")).collect();
            format!("  {} -> {}\n", module.join("::"), imported.join(", "))
        };
        circle.iter().map(line).collect()
    }
}

/// Returns what the text of a module imports.
fn imports(module: &ModulePath, text: &str, modules: &BTreeSet<ModulePath>) -> FileImports {
    let tokens = without_tests(&tokens(text));
    let (mut found, mut written_out) = (FileImports::default(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "use" {
            let end = at + tokens[at..].iter().position(|it| *it == ";").unwrap_or(tokens.len() - at);
            let is_public = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
            let mut leaves = Vec::new();
            use_leaves(&tokens[at + 1..end], &mut Vec::new(), &mut leaves);
            for (path, name) in leaves {
                let Some(path) = from_root(module, &path, modules) else { continue };
                if !is_public {
                    found.used.push(path.clone());
                } else {
                    found.re_exported.insert(name.clone());
                }
                found.names.insert(name, path);
            }
            at = end;
        } else if is_name(tokens[at]) && tokens.get(at + 1) == Some(&"::") {
            let mut path = vec![tokens[at].to_owned()];
            while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|it| is_name(it)) {
                at += 2;
                path.push(tokens[at].to_owned());
            }
            written_out.push(path);
        }
        at += 1;
    }
    for path in written_out {
        let imported = found.names.get(&path[0]).map(|it| [it, &path[1..]].concat());
        found.used.extend(imported.or_else(|| from_root(module, &path, modules)));
    }
    found
}

/// Collects the paths of a `use`, with the name that each has afterwards.
fn use_leaves(tokens: &[&str], prefix: &mut Vec<String>, leaves: &mut Vec<(ModulePath, String)>) {
    let length = prefix.len();
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "::" => {}
            "{" => {
                for part in parts(&tokens[at + 1..]) {
                    use_leaves(part, prefix, leaves);
                }
                prefix.truncate(length);
                return;
            }
            "as" => {
                leaves.push((prefix.clone(), tokens[at + 1].to_owned()));
                prefix.truncate(length);
                return;
            }
            "self" if at == 0 && length > 0 => {}
            name => prefix.push(name.to_owned()),
        }
    }
    if let Some(name) = prefix.last() {
        leaves.push((prefix.clone(), name.clone()));
    }
    prefix.truncate(length);
}

/// Splits the inside of braces at its commas, up to the brace that closes it.
fn parts<'a, 'b>(tokens: &'a [&'b str]) -> Vec<&'a [&'b str]> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" if depth > 0 => depth -= 1,
            "," if depth > 0 => {}
            "," | "}" => {
                if at > start {
                    found.push(&tokens[start..at]);
                }
                start = at + 1;
                if *token == "}" {
                    break;
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns a path from the root of the crate; nothing for paths into other crates.
fn from_root(module: &ModulePath, path: &[String], modules: &BTreeSet<ModulePath>) -> Option<ModulePath> {
    let mut base = module.clone();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "self" => rest = &path[1..],
        "super" => {
            while rest.first().is_some_and(|it| it == "super") {
                base.pop();
                rest = &rest[1..];
            }
        }
        child => {
            base.push(child.to_owned());
            if !modules.contains(&base) {
                return None;
            }
            base.pop();
        }
    }
    base.extend_from_slice(rest);
    Some(base)
}

fn is_name(token: &str) -> bool {
    token.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
}

/// Removes the items that are compiled for tests only.
fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if !tokens[at..].starts_with(&MARK) {
            kept.push(tokens[at]);
            at += 1;
            continue;
        }
        let mut depth = 0;
        while at < tokens.len() {
            match tokens[at] {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            let is_end = depth == 0 && ["}", ";"].contains(&tokens[at]);
            at += 1;
            if is_end {
                break;
            }
        }
    }
    kept
}

/// Returns names, `::`, and single signs, without comments and texts.
fn tokens(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let rest = &text[at..];
        let byte = bytes[at];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |it| it + 2)
        } else if let Some(length) = raw_text(rest) {
            length
        } else if byte == b'"' {
            quoted(rest, '"')
        } else if byte == b'\'' && is_character(rest) {
            quoted(rest, '\'')
        } else if is_name(rest) {
            let length = rest.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(rest.len());
            found.push(&rest[..length]);
            length
        } else if rest.starts_with("::") {
            found.push("::");
            2
        } else {
            let length = rest.chars().next().map_or(1, char::len_utf8);
            if !byte.is_ascii_whitespace() {
                found.push(&rest[..length]);
            }
            length
        };
        at += length;
    }
    found
}

/// Returns the length of a raw text such as `r#"…"#` at the beginning.
fn raw_text(text: &str) -> Option<usize> {
    let rest = text.strip_prefix('r').or_else(|| text.strip_prefix("br"))?;
    let n_marks = rest.len() - rest.trim_start_matches('#').len();
    let inner = rest[n_marks..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(n_marks));
    let length = inner.find(&end).map_or(inner.len(), |it| it + end.len());
    Some(text.len() - inner.len() + length)
}

/// Returns the length of a text in quotes, quotes included.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if sign == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns true for a character such as `'a'`, and false for a lifetime.
fn is_character(text: &str) -> bool {
    let mut signs = text.chars().skip(1);
    signs.next() == Some('\\') || signs.next() == Some('\'')
}
