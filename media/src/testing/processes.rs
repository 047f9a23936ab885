//! The processes of a group, as `/proc` shows them.

use std::fs;
use std::time::Duration;

/// Returns state and name of all processes in a group, zombies included.
pub(crate) fn group(pgid: &str) -> Vec<String> {
    let stats =
        fs::read_dir("/proc").unwrap().filter_map(|it| fs::read_to_string(it.ok()?.path().join("stat")).ok());
    let members = stats.filter_map(|stat| {
        let (name, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        let state = fields.next()?;
        (fields.nth(1)? == pgid).then(|| format!("{state} {name}"))
    });
    members.collect()
}

/// Waits until this many processes of a group are in a state, as named in `/proc`.
pub(crate) async fn until(pgid: &str, n: usize, state: &str) {
    while group(pgid).iter().filter(|it| it.starts_with(state)).count() != n {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
