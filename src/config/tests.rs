use clap::{CommandFactory, Parser};

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
        (name.to_owned(), value.to_owned())
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
        ("log.level", "loud=very"),
        ("log.level", "nonsense"),
        ("log.level", "warning"),
        ("log.level", "info,nonsense"),
        ("log.level", ""),
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
fn playlists_on_the_command_line_replace_those_of_the_file() {
    let file = "[play]\nlists = ['a.m3u', 'http://user:secret@tv.example/b.m3u']\nmax_streams = 1\n";
    let from_file = config(file, &[], &[]).play;
    assert_eq!((from_file.lists.len(), from_file.max_streams), (2, 1));
    let play = config(file, &[], &["c.m3u", "--max-streams", "3"]).play;
    assert_eq!((play.lists, play.max_streams), (vec![ListSource::from("c.m3u")], 3));
}

#[test]
fn unknown_variables_with_our_prefix_are_reported_but_not_errors() {
    let loaded = load_from("", &["HEADWATER_PORT=tcp://10.0.0.1:80", "HEADWATER_STALL=1"], &[]).unwrap();
    assert_eq!(loaded.unknown_variables, ["HEADWATER_PORT", "HEADWATER_STALL"]);
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
    for text in ["", "localhost:80", "1.2.3.4", "99999", "[::1]"] {
        assert!(text.parse::<Listen>().is_err(), "{text}");
    }
}

#[test]
fn printing_a_playlist_url_hides_its_credentials() {
    let list = ListSource::from("http://user:secret@tv.example/get.php?password=secret");
    assert!(!format!("{list} {list:?}").contains("secret"));
    assert_eq!(ListSource::from("file:///srv/a.m3u").to_string(), "/srv/a.m3u");
}
