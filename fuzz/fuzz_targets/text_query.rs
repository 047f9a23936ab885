//! Texts of searches with arbitrary characters: nothing panics, and a query is read again as it was written.
#![no_main]

use domain::guide::text_query::{TextQuery, TextQueryError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(query) = TextQuery::parse(text) else { return };
    match TextQuery::parse(&query.to_string()) {
        Ok(again) => assert_eq!(again, query),
        // A written query names every operator and parenthesis.
        Err(error) => assert!(matches!(error, TextQueryError::TooLong | TextQueryError::TooDeep), "{error}"),
    }
    let has_any = query.matches(&|_| false);
    let has_all = query.matches(&|_| true);
    assert!(!has_any && has_all);
});
