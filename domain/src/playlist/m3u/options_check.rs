//! Properties of any text behind the `|` of an address, for tests and fuzzing.

use super::{PlaylistEntry, PlaylistItem, PlaylistLimits, PlaylistParser};
use crate::entry_details::PLAYER_OPTIONS_MAX;
use crate::stream::RequestHeaders;

const ADDRESS: &str = "http://h.example/live/u/p/1.ts";

/// Checks what holds for any text behind the `|` of an address: the entry has its name and its address, the option before the
/// text is not lost, no value is longer than the text or contains control characters, numbers are bounded, and the sizes of
/// the parts make no difference. `part` is the size of the parts.
///
/// # Panics
/// One of these does not hold.
pub fn check_options(text: &str, part: usize) {
    let text: String = text.chars().map(|it| if matches!(it, '\r' | '\n') { ' ' } else { it }).collect();
    for first in ["", "User-Agent=Box&", "User-Agent=\"Box\"|", "User-Agent%3DBox%26"] {
        let playlist = format!("#EXTM3U\n#EXTINF:-1,Name\n{ADDRESS}|{first}{text}\n");
        let entry = only_entry(&playlist, playlist.len());
        assert_eq!(entry, only_entry(&playlist, part.max(1)), "{playlist}");
        let Some(entry) = entry else {
            // The text belongs to the address if it begins with no option, or is longer than one may be.
            assert!(
                first.is_empty() || playlist.len() > PlaylistLimits::default().url_bytes_max,
                "{playlist}"
            );
            continue;
        };
        check_entry(&entry, playlist.len(), &playlist);
        if !first.is_empty() {
            // Text other than an option belongs to the value before, and headers are ASCII. In a list that is encoded as a whole,
            // every sign of an option is.
            let is_kept = text.is_ascii() && !(first.contains("%3D") && text.contains('='));
            assert!(!is_kept || entry.headers.user_agent.is_some(), "{playlist}");
            assert_eq!(entry.url.expose(), ADDRESS, "{playlist}");
        }
    }
}

fn check_entry(entry: &PlaylistEntry, n_bytes: usize, playlist: &str) {
    assert_eq!(entry.name, "Name", "{playlist}");
    assert!(entry.url.expose().starts_with(ADDRESS), "{playlist}");
    let RequestHeaders { user_agent, referrer, extra } = &entry.headers;
    assert!(extra.len() <= RequestHeaders::EXTRA_MAX, "{playlist}");
    assert!(entry.options.len() <= PLAYER_OPTIONS_MAX, "{playlist}");
    let values = [user_agent, referrer].into_iter().flatten().chain(extra.iter().map(|it| &it.1));
    let values: Vec<&String> = values.chain(entry.options.iter().map(|it| &it.value)).collect();
    assert!(values.iter().all(|it| !it.is_empty() && !it.contains(char::is_control)), "{playlist}");
    assert!(values.iter().map(|it| it.len()).sum::<usize>() <= n_bytes, "{playlist}");
    for (at, (name, _)) in extra.iter().enumerate() {
        let is_same = |it: &(String, String)| it.0.eq_ignore_ascii_case(name);
        assert!(!extra[..at].iter().any(is_same), "{playlist}");
    }
}

fn only_entry(playlist: &str, part: usize) -> Option<PlaylistEntry> {
    let mut entries = Vec::new();
    let mut take = |item| {
        if let PlaylistItem::Entry(entry) = item {
            entries.push(entry);
        }
    };
    let mut parser = PlaylistParser::new(PlaylistLimits::default());
    playlist.as_bytes().chunks(part).for_each(|it| parser.push(it, &mut take));
    parser.finish(&mut take);
    assert!(entries.len() <= 1, "{playlist}");
    entries.pop()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_seeds_of_the_fuzzer_hold() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/entry_options");
        let mut n_seeds = 0;
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.file_name().unwrap().to_string_lossy().starts_with("seed-") {
                check_options(&String::from_utf8(fs::read(&path).unwrap()).unwrap(), 7);
                n_seeds += 1;
            }
        }
        assert!(n_seeds >= 4, "{n_seeds} seeds");
    }

    proptest! {
        #[test]
        fn any_text_behind_the_pipe_holds(
            parts in prop::collection::vec(
                prop_oneof![
                    "[ -~]{0,6}",
                    any::<char>().prop_map(String::from),
                    prop::sample::select(
                        &["|", "&", "=", "%7C", "%26", "%3D", "\"", "'", "User-Agent=", "headers=", "Cookie:", "\\r\\n",
                          "stream_headers=", "drm=", "http://r/?a=1&b=2", "%22", "+", "X-A=1"][..]
                    ).prop_map(str::to_owned),
                ],
                0..24,
            ),
            part in 1_usize..40,
        ) {
            check_options(&parts.concat(), part);
        }
    }
}
