//! Merges the layers of the configuration: defaults, file, environment, arguments.
//!
//! A layer is a TOML table. Each is validated alone when it is read, so that an error names the source of the mistake.
//! Then the layers are merged in order, and the result is parsed as the whole configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use toml::{Table, Value};
use tracing::warn;

use super::Config;
use super::args::{
    Args, Command, Common, PASSWORD_VARIABLE, SOURCE_API_KEY_VARIABLE, SOURCE_PASSWORD_VARIABLE,
};

const PREFIX: &str = "HEADWATER_";
/// Names the configuration file; not a key itself.
const CONFIG_VARIABLE: &str = "HEADWATER_CONFIG";
/// Names the program to the scripts that start it, such as load tests. The gateway does not read it.
const PROGRAM_VARIABLE: &str = "HEADWATER_BIN";
/// Recognised variables that are not configuration keys.
const NON_KEY_VARIABLES: [&str; 5] =
    [CONFIG_VARIABLE, PASSWORD_VARIABLE, PROGRAM_VARIABLE, SOURCE_API_KEY_VARIABLE, SOURCE_PASSWORD_VARIABLE];

/// The reason why an empty value is refused. It would silently turn a setting off, and is usually a mistake.
const EMPTY: &str = "is empty; remove it to use the default";

/// Open files besides client connections: upstream sockets, the store, and those of the runtime.
const OTHER_FILES: u64 = 256;

/// Error while loading the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("failed to read configuration file {}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("configuration file {}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("environment variable {name}: {reason}")]
    Variable { name: String, reason: String },
    #[error(
        "unknown environment variable {name}{}; correct or remove it (`headwater serve --help` lists all settings)",
        alike.as_ref().map_or_else(String::new, |it| format!(", did you mean {it}?"))
    )]
    UnknownVariable { name: String, alike: Option<String> },
    #[error("option --set {text}: {reason}")]
    Set { text: String, reason: String },
    #[error("{key} {reason}")]
    Value { key: String, reason: String },
    #[error("configuration: {0}")]
    Whole(String),
}

/// A configuration, with warnings about its sources.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// Environment variables with the prefix `HEADWATER_` as orchestrators define them for a service of that name. They
    /// are not settings.
    pub ignored_variables: Vec<String>,
    /// The origin of every key, as `table.key`, that somebody has set.
    origins: BTreeMap<String, String>,
}

/// A key of the configuration as it is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigValue {
    pub key: String,
    /// In TOML; `None` if it has none. Addresses of playlists are shown without their credentials.
    pub value: Option<String>,
    /// The default in TOML, if it has one.
    pub default: Option<String>,
    /// Where the value comes from: `default`, the name of the file, of the environment variable or of the option.
    pub origin: String,
}

impl Loaded {
    /// Returns every key, as `table.key`, with its value and its origin, in alphabetical order.
    pub fn values(&self) -> Vec<ConfigValue> {
        let mut shown = self.config.clone();
        // A list shows only the host of an address.
        let lists = std::mem::take(&mut shown.play.lists);
        let mut values = leaves(&serde_json::to_value(&shown).unwrap_or_default());
        let lists = lists.iter().map(|it| Json::String(it.to_string())).collect();
        values.insert("play.lists".to_owned(), Json::Array(lists));
        let defaults = keys();
        let text = |it: &Json| (!it.is_null()).then(|| it.to_string());
        let value_of = |(key, value): (String, Json)| ConfigValue {
            value: text(&value),
            default: defaults.get(&key).and_then(text),
            origin: self.origins.get(&key).map_or(DEFAULT, String::as_str).to_owned(),
            key,
        };
        values.into_iter().map(value_of).collect()
    }

    /// Logs warnings about the environment, after logging has started. `n_files_max` is the limit of open files of this
    /// process; every viewer and every upstream connection uses one.
    pub fn log_warnings(&self, n_files_max: Option<u64>) {
        for name in &self.ignored_variables {
            warn!(
                name,
                "environment variable ignored: it looks like the address of a service, not like a setting"
            );
        }
        let connections_max = self.config.limits.connections_max as u64;
        if let Some(n_files_max) = n_files_max
            && n_files_max < connections_max.saturating_add(OTHER_FILES)
        {
            warn!(
                n_files_max,
                limits.connections_max = connections_max,
                "the limit of open files is lower than limits.connections_max; raise it or lower the number of connections"
            );
        }
    }
}

/// Reads the configuration file, and overrides it with the environment and the arguments.
pub fn load(
    args: &Args,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Loaded, ConfigError> {
    let environment = readable(environment)?;
    let keys = keys();
    let known: BTreeSet<String> = keys.keys().map(|key| variable(key)).collect();
    let ignored_variables = check_names(&environment, &known)?;
    let mut whole = Layers::default();
    let mut layer = Table::new();
    set(&mut layer, "data_dir", Value::String(default_data_dir(&environment)));
    whole.merge(layer, DEFAULT);

    let named = environment.get(CONFIG_VARIABLE).map(PathBuf::from);
    if let Some(path) = args.common.config.clone().or(named) {
        whole.merge(file(&path)?, &format!("file {}", path.display()));
    }
    for (key, default) in &keys {
        let name = variable(key);
        if let Some(text) = environment.get(&name) {
            let layer = single(key, default, text);
            validate(&layer).map_err(|reason| ConfigError::Variable { name: name.clone(), reason })?;
            whole.merge(layer, &format!("variable {name}"));
        }
    }
    for text in &args.common.set {
        let error = |reason: String| ConfigError::Set { text: text.clone(), reason };
        let (key, value) = text.split_once('=').ok_or_else(|| error("expected KEY=VALUE".to_owned()))?;
        let default = keys.get(key.trim()).ok_or_else(|| error(format!("unknown key `{}`", key.trim())))?;
        if value.trim().is_empty() {
            return Err(error(EMPTY.to_owned()));
        }
        let layer = single(key.trim(), default, value.trim());
        validate(&layer).map_err(error)?;
        whole.merge(layer, "option --set");
    }
    let options = options(&args.common, &args.command);
    if let Some(key) = empty_key(&options) {
        return Err(ConfigError::Value { key, reason: EMPTY.to_owned() });
    }
    whole.merge(options, "option");

    let config: Config =
        whole.table.try_into().map_err(|error: toml::de::Error| ConfigError::Whole(reason(&error)))?;
    config.check()?;
    Ok(Loaded { config, ignored_variables, origins: whole.origins })
}

/// Origin of values that nobody has set.
const DEFAULT: &str = "default";

/// The layers that were merged, and which of them each key comes from.
#[derive(Default)]
struct Layers {
    table: Table,
    origins: BTreeMap<String, String>,
}

impl Layers {
    fn merge(&mut self, layer: Table, origin: &str) {
        let layer_keys = leaves(&serde_json::to_value(&layer).unwrap_or_default());
        self.origins.extend(layer_keys.into_keys().map(|key| (key, origin.to_owned())));
        merge(&mut self.table, layer);
    }
}

/// Returns the variables that are text. Others are errors only if they have our prefix.
fn readable(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut readable = BTreeMap::new();
    for (name, value) in environment {
        let Ok(name) = name.into_string() else { continue };
        match value.into_string() {
            Ok(value) if value.trim().is_empty() && name.starts_with(PREFIX) => {
                return Err(ConfigError::Variable { name, reason: EMPTY.to_owned() });
            }
            Ok(value) => drop(readable.insert(name, value)),
            Err(_) if name.starts_with(PREFIX) => {
                return Err(ConfigError::Variable { name, reason: "is not valid UTF-8".to_owned() });
            }
            Err(_) => {}
        }
    }
    Ok(readable)
}

/// Checks that all variables with our prefix are settings. Returns those of orchestrators.
fn check_names(
    environment: &BTreeMap<String, String>,
    known: &BTreeSet<String>,
) -> Result<Vec<String>, ConfigError> {
    let is_unknown = |it: &&String| {
        it.starts_with(PREFIX) && !NON_KEY_VARIABLES.contains(&it.as_str()) && !known.contains(*it)
    };
    let (ignored, unknown): (Vec<_>, Vec<_>) =
        environment.keys().filter(is_unknown).cloned().partition(|it| is_of_orchestrator(it));
    match unknown.into_iter().next() {
        Some(name) => Err(ConfigError::UnknownVariable { alike: alike(&name, known), name }),
        None => Ok(ignored),
    }
}

/// Returns whether Kubernetes or Docker links define such a name for a service whose name begins with `headwater`:
/// `HEADWATER_SERVICE_HOST`, `HEADWATER_PORT_8000_TCP_ADDR`, `HEADWATER_API_PORT`, and so on.
fn is_of_orchestrator(name: &str) -> bool {
    let words: Vec<&str> = name.split('_').collect();
    let is_service = words.windows(2).any(|it| it[0] == "SERVICE" && matches!(it[1], "HOST" | "PORT"));
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let is_port = words.windows(2).any(|it| it[0] == "PORT" && is_number(it[1]));
    is_service || is_port || words.last() == Some(&"PORT")
}

/// Returns the known name that is most like this one, if one is.
fn alike(name: &str, known: &BTreeSet<String>) -> Option<String> {
    let by_distance = known.iter().map(|it| (strsim::damerau_levenshtein(name, it), it));
    by_distance.min().filter(|(distance, _)| *distance <= 3).map(|(_, it)| it.clone())
}

/// Reads the file and validates it alone, because only that error has a line number.
fn file(path: &Path) -> Result<Table, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    let error =
        |error: toml::de::Error| ConfigError::File { path: path.to_owned(), reason: placed(&error, &text) };
    toml::from_str::<Config>(&text).map_err(error)?;
    let layer: Table = toml::from_str(&text).map_err(error)?;
    match empty_key(&layer) {
        Some(key) => Err(ConfigError::File { path: path.to_owned(), reason: format!("`{key}` {EMPTY}") }),
        None => Ok(layer),
    }
}

/// Returns the first key whose text, or one of whose texts, is empty.
fn empty_key(layer: &Table) -> Option<String> {
    let is_empty = |it: &Value| it.as_str().is_some_and(|it| it.trim().is_empty());
    layer.iter().find_map(|(key, value)| match value {
        Value::Table(table) => empty_key(table).map(|below| format!("{key}.{below}")),
        Value::Array(values) => values.iter().any(is_empty).then(|| key.clone()),
        value => is_empty(value).then(|| key.clone()),
    })
}

/// Returns the layer of all arguments except `--set`.
fn options(common: &Common, command: &Command) -> Table {
    let mut layer = Table::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            set(&mut layer, key, value);
        }
    };
    let text = |it: String| Value::String(it);
    put("api_listen", common.api_listen.map(|it| text(it.to_string())));
    put("player_listen", common.player_listen.map(|it| text(it.to_string())));
    put("data_dir", common.data_dir.as_ref().map(|it| text(it.to_string_lossy().into_owned())));
    put("user_agent", common.user_agent.clone().map(text));
    put("stream_networks", common.stream_networks.as_ref().and_then(|it| Value::try_from(it).ok()));
    put("log.level", common.log_level.clone().map(text));
    put("log.format", common.log_format.and_then(|it| Value::try_from(it).ok()));
    if let Command::Play { lists, max_streams } = command {
        let lists = lists.iter().cloned().map(Value::String).collect::<Vec<_>>();
        put("play.lists", (!lists.is_empty()).then_some(Value::Array(lists)));
        put("play.max_streams", max_streams.map(|it| Value::Integer(it.into())));
    }
    layer
}

/// Returns every key as `table.key` with its default, which determines the type of its value.
pub(super) fn keys() -> BTreeMap<String, Json> {
    leaves(&serde_json::to_value(Config::default()).expect("a configuration is plain data"))
}

/// Sorts keys such as `table.key` into their tables. Those without a table come first, as in a file.
pub fn by_table<T>(keys: impl IntoIterator<Item = (String, T)>) -> BTreeMap<String, Vec<(String, T)>> {
    let mut tables: BTreeMap<String, Vec<(String, T)>> = BTreeMap::new();
    for (key, value) in keys {
        let (table, name) = key.rsplit_once('.').unwrap_or(("", &key));
        tables.entry(table.to_owned()).or_default().push((name.to_owned(), value));
    }
    tables
}

/// Returns every value except tables, by its key as `table.key`.
fn leaves(value: &Json) -> BTreeMap<String, Json> {
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
    collect("", value, &mut keys);
    keys
}

/// Returns the name of the environment variable of a key.
pub(super) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('.', "_").to_uppercase())
}

/// Builds a layer with one key from a value given as text.
fn single(key: &str, default: &Json, text: &str) -> Table {
    let layer = |value| {
        let mut layer = Table::new();
        set(&mut layer, key, value);
        layer
    };
    let typed = layer(typed(default, text));
    // A key without a default has no known type. If the value is rejected as a number, try it as a string.
    if default.is_null() && validate(&typed).is_err() { layer(Value::String(text.to_owned())) } else { typed }
}

/// Converts text to the type of a key: a string if the default is a string, otherwise a TOML value.
fn typed(default: &Json, text: &str) -> Value {
    let as_toml = || format!("it = {text}").parse::<Table>().ok().and_then(|mut it| it.remove("it"));
    match default {
        Json::String(_) => Value::String(text.to_owned()),
        // A list of one item may be written without brackets. Networks may also be separated by commas.
        Json::Array(members) => as_toml().unwrap_or_else(|| {
            let is_text_list = members.first().is_some_and(Json::is_string);
            let one = Value::String(text.to_owned());
            if is_text_list { one } else { Value::Array(vec![one]) }
        }),
        _ => as_toml().unwrap_or_else(|| Value::String(text.to_owned())),
    }
}

/// Validates a layer alone.
fn validate(layer: &Table) -> Result<(), String> {
    layer.clone().try_into::<Config>().map(drop).map_err(|error| reason(&error))
}

/// Formats a TOML error with its line number. The line itself is left out, because it may contain the URL of a
/// playlist.
fn placed(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().and_then(|it| text.get(..it.start)).map(|it| it.matches('\n').count() + 1);
    line.map_or_else(|| reason(error), |line| format!("line {line}: {}", reason(error)))
}

/// Formats a TOML error without a position, for layers that are not a file.
fn reason(error: &toml::de::Error) -> String {
    error.message().to_owned()
}

/// Sets a key, whose tables are separated by dots.
fn set(layer: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            layer.insert(key.to_owned(), value);
        }
        Some((table, key)) => {
            let table = layer.entry(table).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(table) = table {
                set(table, key, value);
            }
        }
    }
}

/// Merges `above` into `below`, key by key; `above` wins.
fn merge(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// Returns the data folder of the current user, by the XDG base directory specification.
fn default_data_dir(environment: &BTreeMap<String, String>) -> String {
    let from = |name: &str, below: &str| {
        let base = environment.get(name).filter(|it| it.starts_with('/'))?;
        Some(format!("{}/{below}", base.trim_end_matches('/')))
    };
    from("XDG_DATA_HOME", "headwater")
        .or_else(|| from("HOME", ".local/share/headwater"))
        .unwrap_or_else(|| "/var/lib/headwater".to_owned())
}
