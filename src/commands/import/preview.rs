//! `headwater import --dry-run`: reads a playlist and prints what its import would make.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::process::ExitCode;

use anyhow::bail;
use config::{Config, DataFolder, ListSource, NewImport};
use domain::channel::Channel;
use domain::ids::StreamId;
use domain::playlist::catalogue::Catalogue;
use rest::ChannelKeys;
use services::open_store::open_store;
use tokio::runtime::Builder;

use crate::play::read_lists;
use crate::terminal::{printable, say};

/// Maximum number of channels and groups that are listed.
const LISTED_MAX: usize = 20;

/// Returns whether a stream of this group is selected. No groups select all.
pub(super) fn is_in_groups(group: Option<&str>, groups: &[String]) -> bool {
    groups.is_empty() || group.is_some_and(|it| groups.iter().any(|wanted| wanted.trim() == it.trim()))
}

/// Prints what the list contains and which channels would be made. Blocks.
pub(super) fn print(config: &Config, new: &NewImport, source: &ListSource) -> anyhow::Result<ExitCode> {
    let existing = existing_channels(config)?;
    let mut config = config.clone();
    config.play.lists = vec![source.clone()];
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (catalogue, reports) = runtime.block_on(read_lists(&config))?;
    let is_read = reports.iter().all(|it| it.is_complete());
    for report in &reports {
        say(&report.to_string());
    }
    say(&text(&catalogue, &existing, new));
    if !is_read {
        bail!("the list was not read to its end");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the channels of the store, if there is one.
fn existing_channels(config: &Config) -> anyhow::Result<Vec<Channel>> {
    let folder = DataFolder::new(&config.data_dir);
    if !folder.store().exists() {
        return Ok(Vec::new());
    }
    let store = open_store(&folder)?;
    let channels = store.collection::<Channel>().all()?;
    store.close();
    Ok(channels)
}

fn text(catalogue: &Catalogue, existing: &[Channel], new: &NewImport) -> String {
    let mut groups = BTreeMap::<&str, usize>::new();
    let name_of = |channel: &Channel| {
        let group = channel.group.and_then(|id| catalogue.groups.iter().find(|it| it.id == id));
        group.map_or("", |it| it.name.as_str())
    };
    for channel in &catalogue.channels {
        *groups.entry(name_of(channel)).or_default() += 1;
    }
    let mut text = format!("{} group(s):\n", groups.len());
    for (name, count) in groups.iter().take(LISTED_MAX) {
        let name = if name.is_empty() { "(none)" } else { name };
        put(&mut text, &format!("{count:>8}  {}", printable(name)));
    }
    put_more(&mut text, groups.len());
    if !catalogue.left_out.is_only_channels() {
        put(&mut text, &format!("no channels: {}", catalogue.left_out));
    }
    if new.no_channels {
        put(&mut text, "would make no channels (--no-channels)");
        return text;
    }
    let keys = ChannelKeys::new_for_import(existing);
    let group_of: HashMap<StreamId, Option<&str>> =
        catalogue.streams.iter().map(|it| (it.id, it.group())).collect();
    let is_selected = |it: &StreamId| group_of.get(it).is_some_and(|group| is_in_groups(*group, &new.groups));
    let n_selected = |it: &Channel| it.streams.iter().filter(|it| is_selected(it)).count();
    let selected = catalogue.channels.iter().map(|it| (it, n_selected(it))).filter(|it| it.1 > 0);
    let is_known = |it: &(&Channel, usize)| keys.find(&it.0.name, it.0.tvg_id.as_deref()).is_some();
    let (added, made): (Vec<_>, Vec<_>) = selected.partition(is_known);
    put(&mut text, &format!("would make {} channel(s):", made.len()));
    for (channel, n_streams) in made.iter().take(LISTED_MAX) {
        let line = format!("  {} ({n_streams} stream(s))", printable(&channel.name));
        put(&mut text, &line);
    }
    put_more(&mut text, made.len());
    if !added.is_empty() {
        put(
            &mut text,
            &format!("{} channel(s) exist already and would keep or get these streams", added.len()),
        );
    }
    text
}

fn put(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}

fn put_more(text: &mut String, count: usize) {
    if let more @ 1.. = count.saturating_sub(LISTED_MAX) {
        put(text, &format!("  and {more} more"));
    }
}
