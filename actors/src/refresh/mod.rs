//! What the refreshes of playlists, of films and series, and of guides share.

mod queue;
pub(crate) mod spool;
mod table;

pub(crate) use self::queue::{RefreshQueue, RefreshTask, start_refresh};
pub(crate) use self::spool::Spool;
pub(crate) use self::table::{RefreshRow, RefreshTable};

/// Returns an error text as a sentence of its own.
pub(crate) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|it| it.to_ascii_uppercase());
    let end = if text.ends_with('.') { "" } else { "." };
    first.into_iter().chain(chars).chain(end.chars()).collect()
}
