//! Rules of the project that the compiler does not check: dependencies between crates, code style, words, and the
//! facts in the documents.

mod circles;
mod code;
mod documents;
mod layers;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that serve HTTP, and what they share.
const HTTP_SOURCES: [&str; 9] = [
    "config/src",
    "server/src",
    "services/src",
    "node/src",
    "player/src",
    "push/src",
    "rest/src",
    "route-frame/src",
    "src",
];

/// The folders of non-test code.
const SOURCES: [&str; 14] = [
    "domain/src",
    "import-from/src",
    "media/src",
    "storage/src",
    "actors/src",
    "config/src",
    "server/src",
    "services/src",
    "node/src",
    "player/src",
    "push/src",
    "rest/src",
    "route-frame/src",
    "src",
];

/// Returns the code of a file without comments and without its unit tests.
fn code_of(file: &Path) -> String {
    if is_test_file(file) {
        return String::new();
    }
    let text = read(file);
    let end = ["#[cfg(test)]\nmod ", "#[cfg(test)]\n#["].iter().filter_map(|mark| text.find(mark)).min();
    let code = &text[..end.unwrap_or(text.len())];
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns true for files that contain nothing but tests.
fn is_test_file(file: &Path) -> bool {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_in_tests = file.components().any(|part| part.as_os_str() == "tests");
    is_in_tests || stem == "tests" || stem.ends_with("_tests")
}

fn rust_files(folder: &str) -> Vec<PathBuf> {
    let folder = root().join(folder);
    let files: Vec<_> = every_file()
        .into_iter()
        .filter(|file| file.starts_with(&folder) && has_extension(file, "rs"))
        .collect();
    assert!(!files.is_empty(), "no Rust file in {}", relative(&folder));
    files
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns every text file of the project, without build output, fuzzing results and data.
fn every_file() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", relative(&folder))).flatten()
        {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let is_generated = name == ".git"
                || (name.starts_with("target") && path.is_dir())
                || ["artifacts", "corpus", "coverage", "data", "dist", "node_modules"]
                    .contains(&name.as_str());
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
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", relative(file)))
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|found| found == extension)
}

/// Returns a path relative to the root of the project.
fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
