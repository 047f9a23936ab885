//! Words: phrases that plain English does not need, and names of functions.

use super::{every_file, has_extension, read, relative, root};

/// Words and phrases that do not occur in code, comments and documents, each written in parts so that this file does
/// not match. They are compared in lower case, as whole words.
const PHRASES: [&str; 16] = [
    concat!("who", "ever"),
    concat!("of ", "ours"),
    concat!("as good ", "as a"),
    concat!("is as good ", "as"),
    concat!("what is ", "sent"),
    concat!("the ", "house"),
    concat!("of the ", "room"),
    concat!("this ", "room"),
    concat!("each ", "room"),
    concat!("rooms ", "may"),
    concat!("war", "den"),
    concat!("goes on ", "and"),
    concat!("is ", "well;"),
    concat!("told ", "once"),
    concat!("by hand ", "as long"),
    concat!("is none ", "of"),
];

/// Starts of doc comments that turn a sentence around.
const STARTS: [&str; 5] = ["What ", "Who ", "Which ", "Of which ", "As good as "];

/// Words of comparisons, after which the phrase is plain.
const COMPARING: [&str; 8] = ["longer", "more", "less", "later", "earlier", "older", "sooner", "doubt"];

#[test]
fn comments_and_documents_use_plain_words() {
    let mut wrong = Vec::new();
    for file in every_file().into_iter().filter(|file| is_prose_or_code(&relative(file))) {
        for (number, line) in read(&file).lines().enumerate() {
            if let Some(fault) = fault_of(line) {
                wrong.push(format!("{}:{}: {fault}: {}", relative(&file), number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "words to replace, see docs/glossary.md and CONTRIBUTING.md: {wrong:#?}");
}

#[test]
fn the_check_of_words_finds_phrases_and_inverted_comments() {
    assert!(fault_of(concat!("// Who", "ever asks is answered.")).is_some());
    assert!(fault_of(concat!("    /// Wh", "at is read.")).is_some());
    assert_eq!(fault_of("/// Returns the warehouse number."), None);
    assert!(fault_of(concat!("// A list that is n", "o list.")).is_some());
    assert!(fault_of(concat!("fn what_are_n", "o_lists()")).is_some());
    assert_eq!(fault_of("// There is no such list."), None);
    assert_eq!(fault_of("// A list is no longer than this one."), None);
}

#[test]
fn a_function_is_not_named_of() {
    let mut wrong = Vec::new();
    for file in every_file().into_iter().filter(|file| has_extension(file, "rs")) {
        for (number, line) in read(&file).lines().enumerate() {
            if let Some(name) = function_named_of(line) {
                wrong.push(format!("{}:{}: fn {name}", relative(&file), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "functions to name `new`, `from_…` or after their result: {wrong:#?}");
}

#[test]
fn the_check_of_functions_finds_of_and_names_that_begin_with_it() {
    let function = concat!("f", "n ");
    let checked =
        |name: &str| function_named_of(&format!("    pub(super) async {function}{name}")).map(str::to_owned);
    assert_eq!(checked("of(call: &Call) -> Self {").as_deref(), Some("of"));
    assert_eq!(checked("of<T>(call: T) -> Self {").as_deref(), Some("of"));
    assert_eq!(checked("of_call(call: &Call) -> Self {").as_deref(), Some("of_call"));
    for other in ["offer(of: u32) {", "kind_of(name: &str) {", "official() {"] {
        assert_eq!(checked(other), None, "{other}");
    }
    assert_eq!(function_named_of("let n = often of_call(it);"), None);
}

/// Returns the name of the function that a line defines, if it is `of` or begins with `of_`.
fn function_named_of(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let is_definition = before.is_empty() || before.ends_with(' ');
    (is_definition && (name == "of" || name.starts_with("of_"))).then_some(name)
}

/// Returns the forbidden phrase of a line.
fn fault_of(line: &str) -> Option<String> {
    let comment = line.trim_start().strip_prefix("/// ").unwrap_or_default();
    if let Some(start) = STARTS.iter().find(|start| comment.starts_with(**start)) {
        return Some(format!("a doc comment that starts with {start:?}"));
    }
    let lower = line.to_lowercase();
    if says_what_is_not(&lower) {
        return Some("say what it is, or that it is not".to_owned());
    }
    PHRASES.iter().find(|phrase| contains_words(&lower, phrase)).map(|phrase| format!("{phrase:?}"))
}

/// Returns whether a line negates with "no" after a verb, in a sentence or a name. "There is no Y" is plain.
fn says_what_is_not(lower: &str) -> bool {
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|it| !it.is_empty()).collect();
    words.windows(4).any(|it| {
        ["is", "are", "was", "were"].contains(&it[1])
            && it[2] == "no"
            && !["there", "until"].contains(&it[0])
            && !COMPARING.contains(&it[3])
    })
}

fn contains_words(text: &str, phrase: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(phrase)
        .any(|(at, _)| !text[..at].ends_with(is_letter) && !text[at + phrase.len()..].starts_with(is_letter))
}

/// Returns true for text and code of the project. Recorded baselines, and pages that quote old words, are left out.
fn is_prose_or_code(path: &str) -> bool {
    let is_left_out = path.starts_with("benches/baselines/")
        || path.starts_with("LICENSE")
        || ["CHANGELOG.md", "CONTRIBUTING.md"].contains(&path);
    let file = root().join(path);
    let is_text = ["rs", "md", "toml", "sh", "py", "html", "yml"].iter().any(|it| has_extension(&file, it));
    !is_left_out && (is_text || path == "justfile" || path.starts_with(".ci/"))
}
