//! One layer over another: default, file, environment, arguments.
//!
//! A layer is a TOML table. Each is checked alone when it is read, so that an error names the place where the
//! mistake stands; then they are laid over each other, and what is left is read once more as the whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use toml::{Table, Value};
use tracing::warn;

use super::Config;
use super::args::{Args, Command, Common, PASSWORD_VARIABLE};

const PREFIX: &str = "HEADWATER_";
/// Names the file; not a key of it.
const CONFIG_VARIABLE: &str = "HEADWATER_CONFIG";
/// Variables that mean something to us and are keys of no file.
const NO_KEYS: [&str; 2] = [CONFIG_VARIABLE, PASSWORD_VARIABLE];

/// Files that are open beside the connections of clients: upstreams, logs, the runtime's own.
const FILES_BESIDE: u64 = 256;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("failed to read configuration file {}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("configuration file {}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("environment variable {name}: {reason}")]
    Variable { name: String, reason: String },
    #[error("option --set {text}: {reason}")]
    Set { text: String, reason: String },
    #[error("{key} {reason}")]
    Value { key: String, reason: String },
    #[error("configuration: {0}")]
    Whole(String),
}

/// A configuration, and what was odd about its sources.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// Environment variables with our prefix that mean nothing to us. No errors, because orchestrators invent
    /// such names for services of ours.
    pub unknown_variables: Vec<String>,
}

impl Loaded {
    /// Logs what an operator may want to know about the surroundings, once the log is there. `n_files_max` is how
    /// many files this process may have open; every viewer is one, and so is every upstream.
    pub fn tell_oddities(&self, n_files_max: Option<u64>) {
        for name in &self.unknown_variables {
            warn!(name, "this environment variable means nothing here");
        }
        let connections_max = self.config.limits.connections_max as u64;
        if let Some(n_files_max) = n_files_max
            && n_files_max < connections_max.saturating_add(FILES_BESIDE)
        {
            warn!(
                n_files_max,
                limits.connections_max = connections_max,
                "the system allows fewer open files than connections are allowed here"
            );
        }
    }
}

/// Reads the file that is named, and lays environment and arguments over it.
pub fn load(
    args: &Args,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Loaded, ConfigError> {
    let environment: BTreeMap<String, String> = environment.into_iter().collect();
    let keys = keys();
    let mut whole = Table::new();
    set(&mut whole, "data_dir", Value::String(default_data_dir(&environment)));

    let named = environment.get(CONFIG_VARIABLE).filter(|it| !it.is_empty()).map(PathBuf::from);
    if let Some(path) = args.common.config.clone().or(named) {
        lay_over(&mut whole, file(&path)?);
    }
    for (key, default) in &keys {
        let name = variable(key);
        if let Some(text) = environment.get(&name) {
            let layer = single(key, default, text);
            alone(&layer).map_err(|reason| ConfigError::Variable { name, reason })?;
            lay_over(&mut whole, layer);
        }
    }
    for text in &args.common.set {
        let error = |reason: String| ConfigError::Set { text: text.clone(), reason };
        let (key, value) = text.split_once('=').ok_or_else(|| error("expected KEY=VALUE".to_owned()))?;
        let default = keys.get(key.trim()).ok_or_else(|| error(format!("unknown key `{}`", key.trim())))?;
        let layer = single(key.trim(), default, value.trim());
        alone(&layer).map_err(error)?;
        lay_over(&mut whole, layer);
    }
    lay_over(&mut whole, options(&args.common, &args.command));

    let config: Config =
        whole.try_into().map_err(|error: toml::de::Error| ConfigError::Whole(reason(&error)))?;
    config.check()?;
    let known: Vec<String> = keys.keys().map(|key| variable(key)).collect();
    let unknown_variables = environment
        .into_keys()
        .filter(|it| it.starts_with(PREFIX) && !NO_KEYS.contains(&it.as_str()) && !known.contains(it))
        .collect();
    Ok(Loaded { config, unknown_variables })
}

/// The file, after it has been read as a configuration of its own: that error knows line and column.
fn file(path: &Path) -> Result<Table, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    let error =
        |error: toml::de::Error| ConfigError::File { path: path.to_owned(), reason: placed(&error, &text) };
    toml::from_str::<Config>(&text).map_err(error)?;
    toml::from_str(&text).map_err(error)
}

/// What the arguments say apart from `--set`.
fn options(common: &Common, command: &Command) -> Table {
    let mut layer = Table::new();
    let mut say = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            set(&mut layer, key, value);
        }
    };
    let text = |it: String| Value::String(it);
    say("api_listen", common.api_listen.map(|it| text(it.to_string())));
    say("player_listen", common.player_listen.map(|it| text(it.to_string())));
    say("data_dir", common.data_dir.as_ref().map(|it| text(it.to_string_lossy().into_owned())));
    say("user_agent", common.user_agent.clone().map(text));
    say("stream_networks", common.stream_networks.as_ref().and_then(|it| Value::try_from(it).ok()));
    say("log.level", common.log_level.clone().map(text));
    say("log.format", common.log_format.and_then(|it| Value::try_from(it).ok()));
    if let Command::Play { lists, max_streams } = command {
        let lists = lists.iter().cloned().map(Value::String).collect::<Vec<_>>();
        say("play.lists", (!lists.is_empty()).then_some(Value::Array(lists)));
        say("play.max_streams", max_streams.map(|it| Value::Integer(it.into())));
    }
    layer
}

/// Every key, as `table.key`, with its default: that says which kind of value it takes.
fn keys() -> BTreeMap<String, Json> {
    fn collect(prefix: &str, value: &Json, keys: &mut BTreeMap<String, Json>) {
        match value {
            Json::Object(members) => {
                for (name, value) in members {
                    let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                    collect(&key, value, keys);
                }
            }
            value => {
                keys.insert(prefix.to_owned(), value.clone());
            }
        }
    }
    let mut keys = BTreeMap::new();
    let defaults = serde_json::to_value(Config::default()).expect("a configuration is plain data");
    collect("", &defaults, &mut keys);
    keys
}

/// The environment variable of a key.
fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_uppercase())
}

/// A layer with one key, whose value came as text.
fn single(key: &str, default: &Json, text: &str) -> Table {
    let layer = |value| {
        let mut layer = Table::new();
        set(&mut layer, key, value);
        layer
    };
    let typed = layer(typed(default, text));
    // A key without a default does not say what it takes: a number that is refused may have been meant as a text.
    if default.is_null() && alone(&typed).is_err() { layer(Value::String(text.to_owned())) } else { typed }
}

/// Text as the kind of value that a key takes: where the default is a text it is one, else what TOML reads.
fn typed(default: &Json, text: &str) -> Value {
    let as_toml = || format!("it = {text}").parse::<Table>().ok().and_then(|mut it| it.remove("it"));
    match default {
        Json::String(_) => Value::String(text.to_owned()),
        // A list may be written without brackets when it has one member; networks also with commas.
        Json::Array(members) => as_toml().unwrap_or_else(|| {
            let is_text_list = members.first().is_some_and(Json::is_string);
            let one = Value::String(text.to_owned());
            if is_text_list { one } else { Value::Array(vec![one]) }
        }),
        _ => as_toml().unwrap_or_else(|| Value::String(text.to_owned())),
    }
}

/// Would this layer do alone?
fn alone(layer: &Table) -> Result<(), String> {
    layer.clone().try_into::<Config>().map(drop).map_err(|error| reason(&error))
}

/// The words of a TOML error, and its line. Not the line itself: it may hold the address of a playlist.
fn placed(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().and_then(|it| text.get(..it.start)).map(|it| it.matches('\n').count() + 1);
    line.map_or_else(|| reason(error), |line| format!("line {line}: {}", reason(error)))
}

/// The words of a TOML error, without a position: there is no file it could be a position in.
fn reason(error: &toml::de::Error) -> String {
    error.message().to_owned()
}

/// Sets `key` or `table.key`.
fn set(layer: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            layer.insert(key.to_owned(), value);
        }
        Some((table, key)) => {
            let table = layer.entry(table).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(table) = table {
                table.insert(key.to_owned(), value);
            }
        }
    }
}

/// What `above` says replaces what `below` says, key by key.
fn lay_over(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => lay_over(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// Where programs of this user keep their data.
fn default_data_dir(environment: &BTreeMap<String, String>) -> String {
    let from = |name: &str, below: &str| {
        let base = environment.get(name).filter(|it| it.starts_with('/'))?;
        Some(format!("{}/{below}", base.trim_end_matches('/')))
    };
    from("XDG_DATA_HOME", "headwater")
        .or_else(|| from("HOME", ".local/share/headwater"))
        .unwrap_or_else(|| "/var/lib/headwater".to_owned())
}
