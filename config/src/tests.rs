use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::{CommandFactory, Parser};

use super::layers::{keys, variable};
use super::*;

/// Loads a configuration from the text of a file, variables of the form `NAME=VALUE`, and arguments.
fn load_from(file: &str, environment: &[&str], args: &[&str]) -> Result<Loaded, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("headwater.toml");
    std::fs::write(&path, file).unwrap();
    let mut line = vec!["headwater", "play", "--config", path.to_str().unwrap()];
    line.extend(args);
    let args = Args::try_parse_from(line).map_err(|error| error.to_string())?;
    let environment = environment.iter().map(|it| {
        let (name, value) = it.split_once('=').unwrap();
        (name.into(), value.into())
    });
    load(&args, environment).map_err(|error| error.to_string())
}

fn config(file: &str, environment: &[&str], args: &[&str]) -> Config {
    load_from(file, environment, args).unwrap().config
}

fn error(file: &str, environment: &[&str], args: &[&str]) -> String {
    load_from(file, environment, args).unwrap_err()
}

#[test]
fn the_command_line_definition_is_consistent() {
    Args::command().debug_assert();
}

#[test]
fn without_any_source_the_defaults_apply() {
    let config = config("", &[], &[]);
    assert_eq!(config, Config::default());
    assert_eq!(config.api_listen, Listen::everywhere(8000));
    assert_eq!(config.player_listen, Listen::everywhere(9191));
}

#[test]
fn options_override_the_environment_which_overrides_the_file() {
    let file = "player_listen = '127.0.0.1:1'\n[engine]\nstall_timeout = 1\nconnect_timeout = 1.5\n[log]\nlevel = 'warn'";
    let variables = ["HEADWATER_PLAYER_LISTEN=127.0.0.1:2", "HEADWATER_ENGINE_STALL_TIMEOUT=2"];
    let port = |config: Config| config.player_listen.address().port();

    assert_eq!(port(config(file, &[], &[])), 1);
    assert_eq!(port(config(file, &variables, &[])), 2);
    assert_eq!(port(config(file, &variables, &["--player-listen", "127.0.0.1:3"])), 3);

    let merged = config(file, &variables, &["--set", "engine.give_up_after=7"]);
    assert_eq!(merged.engine.stall_timeout, Duration::from_secs(2));
    assert_eq!(merged.engine.connect_timeout, Duration::from_millis(1500));
    assert_eq!(merged.engine.give_up_after, Duration::from_secs(7));
    assert_eq!(merged.log.level, "warn");
    assert_eq!(merged.engine.start_timeout, Config::default().engine.start_timeout);
}

#[test]
fn an_error_in_the_file_names_the_key_and_the_line() {
    let error_text = error("api_listen = '[::]:1'\n\n[limits]\nconections_max = 5\n", &[], &[]);
    assert!(error_text.contains("line 4") && error_text.contains("conections_max"), "{error_text}");
    let error_text = error("[engine]\nstall = 5\n", &[], &[]);
    assert!(error_text.contains("line 2") && error_text.contains("`stall`"), "{error_text}");
    let error_text = error("player_listen = 'everywhere'\n", &[], &[]);
    assert!(error_text.contains("line 1") && error_text.contains("`everywhere`"), "{error_text}");
}

#[test]
fn an_error_names_the_invalid_variable_or_option() {
    let error_text = error("", &["HEADWATER_LIMITS_CONNECTIONS_MAX=many"], &[]);
    assert!(error_text.contains("HEADWATER_LIMITS_CONNECTIONS_MAX"), "{error_text}");
    let error_text = error("", &[], &["--set", "engine.stall=5"]);
    assert!(error_text.contains("engine.stall"), "{error_text}");
    let error_text = error("", &[], &["--set", "engine.stall_timeout=-1"]);
    assert!(error_text.contains("engine.stall_timeout"), "{error_text}");
    let error_text = error("", &[], &["--stream-networks", "lan"]);
    assert!(error_text.contains("`lan`"), "{error_text}");
}

#[test]
fn invalid_values_are_rejected_before_a_port_is_bound() {
    for (key, value) in [
        ("engine.stall_timeout", "0"),
        ("engine.new_client_behind_seconds", "60"),
        ("limits.header_timeout", "0"),
        ("limits.body_timeout", "0"),
        ("limits.body_bytes_max", "0"),
        ("limits.playlist_timeout", "0"),
        ("limits.disk_timeout", "0"),
        ("limits.playlist_bytes_max", "0"),
        ("limits.guide_timeout", "0"),
        ("limits.guide_bytes_max", "0"),
        ("limits.guide_unpacked_bytes_max", "0"),
        ("plugins.answer_timeout", "0"),
        ("log.level", "loud=very"),
        ("log.level", "nonsense"),
        ("log.level", "warning"),
        ("log.level", "info,nonsense"),
        ("log.level", " , "),
        ("user_agent", "a\u{1}b"),
    ] {
        let error_text = error("", &[], &["--set", &format!("{key}={value}")]);
        assert!(error_text.starts_with(key), "{error_text}");
    }
}

#[test]
fn an_unknown_log_level_is_refused_with_the_levels_that_exist() {
    for (variables, arguments) in [
        (&[][..], &["--log-level", "warning"][..]),
        (&["HEADWATER_LOG_LEVEL=warning"][..], &[][..]),
        (&[][..], &["--set", "log.level=warning"][..]),
    ] {
        let error_text = error("", variables, arguments);
        let expected =
            "contains \"warning\", which is not a log level; use off, error, warn, info, debug or trace";
        assert!(error_text.contains(expected), "{error_text}");
    }
    for level in
        ["info", "WARN", "off", "3", "info,media=debug", "warn,hyper=trace", "info,media", "warn,media::pump"]
    {
        assert_eq!(config("", &[], &["--log-level", level]).log.level, level);
    }
}

#[test]
fn every_key_can_be_set_by_variable_and_by_option() {
    let config = config(
        "",
        &[
            "HEADWATER_STREAM_NETWORKS=loopback, 192.0.2.0/24",
            "HEADWATER_METRICS_NETWORKS=[\"any\"]",
            "HEADWATER_PLAY_LISTS=/srv/tv.m3u",
            "HEADWATER_USER_AGENT=42",
            "HEADWATER_ENGINE_RETURN_TO_PREFERRED_AFTER=90",
            "HEADWATER_ENGINE_AT_LIMIT=refuse",
            "HEADWATER_LOG_FORMAT=json",
        ],
        &["--set", "play.max_streams=2", "--set", "limits.connections_max=5"],
    );
    assert_eq!(config.stream_networks, "loopback,192.0.2.0/24".parse().unwrap());
    assert_eq!(config.metrics_networks, "any".parse().unwrap());
    assert_eq!(config.play.lists, vec![ListSource::from("/srv/tv.m3u")]);
    assert_eq!(config.user_agent.as_deref(), Some("42"));
    assert_eq!(config.engine.return_to_preferred_after, Some(Duration::from_secs(90)));
    assert_eq!(config.engine.at_limit, domain::settings::AtLimit::Refuse);
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!((config.play.max_streams, config.limits.connections_max), (2, 5));
}

#[test]
fn the_help_shows_every_key_below_its_table_with_its_default() {
    let help = Args::command().render_long_help().to_string();
    let mut table = "";
    let mut shown = BTreeMap::new();
    for line in help.lines().skip_while(|it| *it != "Configuration:").take_while(|it| *it != "Signals:") {
        if let Some(name) = line.trim().strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            table = name;
        } else if let Some((name, default)) = line.trim().split_once("  ") {
            let key = if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") };
            shown.insert(key, default.trim().to_owned());
        }
    }
    let missing: Vec<String> = keys().into_keys().filter(|it| !shown.contains_key(it)).collect();
    assert!(missing.is_empty(), "{missing:?}\n{help}");
    assert_eq!(shown["limits.connections_max"], "8192");
    assert_eq!(shown["network_access.metrics.connect"], "[\"any\"]");
    assert_eq!(shown["public_url"], "none");
}

#[test]
fn playlists_on_the_command_line_replace_those_of_the_file() {
    let file = "[play]\nlists = ['a.m3u', 'http://user:secret@tv.example/b.m3u']\nmax_streams = 1\n";
    let from_file = config(file, &[], &[]).play;
    assert_eq!((from_file.lists.len(), from_file.max_streams), (2, 1));
    let play = config(file, &[], &["c.m3u", "--max-streams", "3"]).play;
    assert_eq!((play.lists, play.max_streams), (vec![ListSource::from("c.m3u")], 3));
}

#[test]
fn an_unknown_variable_with_our_prefix_is_refused_with_the_name_that_was_meant() {
    let error_text = error("", &["HEADWATER_STREAM_NETWORK=loopback"], &[]);
    assert!(
        error_text.starts_with(
            "unknown environment variable HEADWATER_STREAM_NETWORK, did you mean HEADWATER_STREAM_NETWORKS?"
        ),
        "{error_text}"
    );
    let error_text = error("", &["HEADWATER_COLOUR=red"], &[]);
    assert!(error_text.starts_with("unknown environment variable HEADWATER_COLOUR; correct"), "{error_text}");
    // Names that orchestrators define for a service called `headwater` or `headwater-api`.
    let theirs = [
        "HEADWATER_API_PORT=tcp://10.0.0.1:80",
        "HEADWATER_API_SERVICE_PORT_HTTP=80",
        "HEADWATER_PORT=tcp://10.0.0.1:80",
        "HEADWATER_PORT_8000_TCP_ADDR=10.0.0.1",
        "HEADWATER_SERVICE_HOST=10.0.0.1",
    ];
    let names = theirs.map(|it| it.split_once('=').unwrap().0);
    assert_eq!(load_from("", &theirs, &[]).unwrap().ignored_variables, names);
    assert!(load_from("", &["HEADWATER_PASSWORD=a", "OTHER="], &[]).unwrap().ignored_variables.is_empty());
}

#[test]
fn an_empty_value_is_refused_wherever_it_comes_from() {
    for key in keys().keys() {
        let name = variable(key);
        for value in ["", "  "] {
            let error_text = error("", &[&format!("{name}={value}")], &[]);
            assert!(error_text.contains(&name) && error_text.contains("is empty"), "{error_text}");
            let error_text = error("", &[], &["--set", &format!("{key}={value}")]);
            assert!(error_text.contains(key) && error_text.contains("is empty"), "{error_text}");
        }
    }
    for name in ["HEADWATER_CONFIG", "HEADWATER_PASSWORD"] {
        assert!(error("", &[&format!("{name}=")], &[]).contains(name));
    }
    for (file, key) in [
        ("user_agent = ''", "`user_agent`"),
        ("[play]\nlists = ['a.m3u', ' ']", "`play.lists`"),
        ("[log]\nlevel = ''", "`log.level`"),
        ("data_dir = ''", "`data_dir`"),
    ] {
        let error_text = error(file, &[], &[]);
        assert!(error_text.contains(key) && error_text.contains("is empty"), "{error_text}");
    }
    for (arguments, key) in [
        (["--user-agent", ""], "user_agent"),
        (["--data-dir", " "], "data_dir"),
        (["--log-level", " "], "log.level"),
    ] {
        assert_eq!(error("", &[], &arguments), format!("{key} is empty; remove it to use the default"));
    }
    assert!(error("", &[], &[""]).starts_with("play.lists is empty"));
}

#[test]
fn every_table_refuses_unknown_keys_wherever_they_come_from() {
    let mut tables: BTreeSet<&str> = BTreeSet::new();
    let keys = keys();
    tables.extend(keys.keys().map(|it| it.rsplit_once('.').map_or("", |(table, _)| table)));
    assert!(tables.contains("") && tables.len() > 4, "{tables:?}");
    for table in tables {
        let file = if table.is_empty() { "nonsense = 1".into() } else { format!("[{table}]\nnonsense = 1") };
        assert!(error(&file, &[], &[]).contains("nonsense"), "{table}");
        let key = if table.is_empty() { "nonsense".into() } else { format!("{table}.nonsense") };
        assert!(error("", &[&format!("{}=1", variable(&key))], &[]).contains("NONSENSE"), "{table}");
        assert!(error("", &[], &["--set", &format!("{key}=1")]).contains(&key), "{table}");
    }
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_text_is_refused_if_it_is_ours_and_ignored_otherwise() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStrExt;

    let args = Args::try_parse_from(["headwater", "serve"]).unwrap();
    let load_with = |name: &[u8]| {
        let entry = (OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(b"\xff").to_owned());
        load(&args, [entry, (OsString::from("HOME"), "/home/a".into())]).map_err(|error| error.to_string())
    };
    assert!(load_with(b"OTHER").is_ok() && load_with(b"\xfe").is_ok());
    let error_text = load_with(b"HEADWATER_USER_AGENT").unwrap_err();
    assert_eq!(error_text, "environment variable HEADWATER_USER_AGENT: is not valid UTF-8");
}

#[test]
fn the_default_data_folder_follows_the_xdg_specification() {
    let directory = |environment: &[&str]| config("", environment, &[]).data_dir;
    assert_eq!(directory(&["XDG_DATA_HOME=/x/", "HOME=/home/a"]), PathBuf::from("/x/headwater"));
    assert_eq!(directory(&["HOME=/home/a"]), PathBuf::from("/home/a/.local/share/headwater"));
    assert_eq!(directory(&[]), PathBuf::from("/var/lib/headwater"));
}

#[test]
fn a_listen_address_may_be_a_port_alone() {
    assert_eq!("9191".parse(), Ok(Listen::everywhere(9191)));
    assert_eq!(":9191".parse(), Ok(Listen::everywhere(9191)));
    assert_eq!("127.0.0.1:0".parse(), Ok(Listen::at("127.0.0.1:0".parse().unwrap())));
    assert_eq!("localhost:80".parse(), Ok(Listen::at("127.0.0.1:80".parse().unwrap())));
    for text in ["", "localhost", "localhost:x", "tv.example:80", "1.2.3.4", "99999", "[::1]"] {
        assert!(text.parse::<Listen>().is_err(), "{text}");
    }
}

#[test]
fn printing_a_playlist_url_hides_its_credentials() {
    let list = ListSource::from("http://user:secret@tv.example/get.php?password=secret");
    assert!(!format!("{list} {list:?}").contains("secret"));
    assert_eq!(ListSource::from("file:///srv/a.m3u").to_string(), "/srv/a.m3u");
}

#[test]
fn the_networks_of_a_class_can_be_set_in_the_file_by_variable_and_by_option() {
    let file = "[network_access.ui]\nconnect = ['private', 'loopback']\n[network_access.streams]\nanonymous = 'none'\n";
    let variables = ["HEADWATER_NETWORK_ACCESS_M3U_EPG_ANONYMOUS=192.168.1.20, loopback"];
    let config = config(file, &variables, &["--set", "network_access.metrics.connect=10.0.0.0/8"]);
    let access = &config.network_access;
    let text = |networks: &Networks| networks.to_string();
    assert_eq!(text(&access.ui.connect), "private, loopback");
    assert_eq!(access.streams.anonymous.as_ref().map(text).as_deref(), Some("none"));
    assert_eq!(access.m3u_epg.anonymous.as_ref().map(text).as_deref(), Some("192.168.1.20/32, loopback"));
    assert_eq!(text(&access.metrics.connect), "10.0.0.0/8");
    assert_eq!(text(&access.streams.connect), "any");

    let error_text = error("[network_access.ui]\nanonymous = 'loopback'\n", &[], &[]);
    assert!(
        error_text.contains("network_access.ui.anonymous") && error_text.contains("none"),
        "{error_text}"
    );
    let error_text = error("", &[], &["--set", "network_access.radio.connect=any"]);
    assert!(error_text.contains("network_access.radio"), "{error_text}");
}

#[test]
fn trusted_proxies_must_not_contain_every_address() {
    let one = config("", &["HEADWATER_TRUSTED_PROXIES=10.0.0.1, 10.0.0.2"], &[]).trusted_proxies;
    assert_eq!(one.to_string(), "10.0.0.1/32, 10.0.0.2/32");
    for everyone in ["any", "10.0.0.1, any", "0.0.0.0/0", "::/0"] {
        let error_text = error("", &[], &["--set", &format!("trusted_proxies={everyone}")]);
        assert!(error_text.contains("trusted_proxies"), "{everyone}: {error_text}");
    }
}

#[test]
fn settings_of_programs_come_from_every_source_and_name_no_hidden_path() {
    let file = "data_dir = '/data'\n[programs]\nallowed = ['ffmpeg', '/opt/tv/read.sh']\nreadable_paths = ['/data/scripts']";
    let programs = config(file, &["HEADWATER_PROGRAMS_WRITABLE_PATHS=/srv/out"], &[]).programs;
    assert_eq!(programs.allowed, ["ffmpeg", "/opt/tv/read.sh"]);
    assert_eq!(programs.writable_paths, [PathBuf::from("/srv/out")]);
    let confinement = programs.launcher_settings(Path::new("/data")).confinement;
    assert_eq!(confinement.hidden, ["/data", "/data/store", "/data/key"].map(PathBuf::from));
    assert_eq!(confinement.writable, [PathBuf::from("/srv/out"), std::env::temp_dir()]);
    for (setting, reason) in [
        (
            "allowed = ['./ffmpeg']",
            "programs.allowed contains `./ffmpeg`, which is neither a name nor an absolute path",
        ),
        (
            "comskip = 'bin/comskip'",
            "programs.comskip is `bin/comskip`, which is neither a name nor an absolute path",
        ),
        ("hidden_paths = ['etc']", "programs.hidden_paths contains `etc`; an absolute path is expected"),
        (
            "readable_paths = ['/data/']",
            "programs.readable_paths contains `/data/`, which stays hidden from programs",
        ),
        (
            "writable_paths = ['/data/key']",
            "programs.writable_paths contains `/data/key`, which stays hidden from programs",
        ),
    ] {
        assert_eq!(error(&format!("data_dir = '/data'\n[programs]\n{setting}"), &[], &[]), reason);
    }
}
