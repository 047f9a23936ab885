//! Small exports of the database of the other service, in the forms that `pg_dump` writes.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::titles::{GAMMA_UUID, HEAT_UUID, PILOT_UUID};
use super::{API_KEY, BACKUP, HASH, NEWS, NEWS_UUID};
use crate::support::upstream::Provider;

/// A table: name, columns, and rows of values as `COPY` writes them.
type Table = (&'static str, &'static str, Vec<String>);

/// The tables of a household with two channels, in the order of an export.
fn tables(provider: &Provider) -> Vec<Table> {
    let (news, backup) = (provider.url(NEWS), provider.url(BACKUP));
    let list = provider.url("/get.php?username=anna&password=hunter2");
    let properties = r#"{"xc_password": "kid-tv", "hide_adult_content": true}"#;
    let user = |text: &str| text.to_owned();
    vec![
        (
            "accounts_user",
            "id, password, last_login, is_superuser, username, first_name, last_name, email, is_staff, is_active, date_joined, avatar_config, user_level, custom_properties, api_key, stream_limit",
            vec![
                format!(
                    "7\t{HASH}\t\\N\tt\tanna\t\t\tanna@example.com\tt\tt\t2026-11-20 23:15:06.550031+00\t{{}}\t10\t{{}}\t{API_KEY}\t0"
                ),
                format!(
                    "8\t!unusable\t\\N\tf\tkid\t\t\t\tf\tt\t2026-11-20 23:15:06.550031+00\t{{}}\t0\t{properties}\t\\N\t1"
                ),
            ],
        ),
        ("accounts_user_channel_profiles", "id, user_id, channelprofile_id", vec![user("1\t8\t1")]),
        (
            "core_coresettings",
            "id, key, name, value",
            vec![user("16\tsystem_settings\tSystem\t{\"time_zone\": \"Europe/Berlin\"}")],
        ),
        (
            "core_streamprofile",
            "id, name, command, parameters, locked, is_active, user_agent_id",
            vec![user("1\tffmpeg\tffmpeg\t-i {streamUrl}\tt\tt\t1")],
        ),
        (
            "core_useragent",
            "id, name, user_agent, description, is_active, created_at, updated_at",
            vec![user("1\tTiviMate\tTiviMate/5.1.6\t\tt\t\\N\t\\N")],
        ),
        (
            "dispatcharr_channels_channel",
            "id, channel_number, name, tvg_id, uuid, channel_group_id, logo_id, epg_data_id, stream_profile_id, user_level, is_adult, hidden_from_output",
            vec![
                format!("11\t6.5\tNews\tnews.one\t{NEWS_UUID}\t4\t5\t1\t\\N\t0\tf\tf"),
                user(
                    "12\t7\tLate\\\\Night\t\\N\tb7ff78a1-58a7-458f-9878-8178c06af1b4\t4\t\\N\t\\N\t\\N\t0\tt\tf",
                ),
            ],
        ),
        ("dispatcharr_channels_channelgroup", "id, name", vec![user("4\tNews")]),
        ("dispatcharr_channels_channelprofile", "id, name", vec![user("1\tKids")]),
        (
            "dispatcharr_channels_channelprofilemembership",
            "id, enabled, channel_id, channel_profile_id",
            vec![user("1\tt\t11\t1"), user("2\tf\t12\t1")],
        ),
        (
            "dispatcharr_channels_channelstream",
            "id, \"order\", channel_id, stream_id",
            vec![user("1\t1\t11\t21"), user("2\t0\t11\t22"), user("3\t0\t12\t23")],
        ),
        ("dispatcharr_channels_logo", "id, name, url", vec![user("5\tNews\thttp://tv.example/news.png")]),
        ("dispatcharr_channels_recording", "id, channel_id", vec![user("1\t11")]),
        (
            "dispatcharr_channels_stream",
            "id, name, url, logo_url, tvg_id, local_file, current_viewers, updated_at, is_custom, stream_hash, last_seen, custom_properties, channel_group_id, m3u_account_id, stream_profile_id",
            vec![
                format!(
                    "21\tNews One\t{news}\t\\N\tnews.one\t\\N\t0\t2026-11-20 23:16:07+00\tf\taa\t2026-11-20 23:16:07+00\t{{}}\t4\t2\t\\N"
                ),
                format!(
                    "22\tNews Backup\t{backup}\t\\N\t\\N\t\\N\t0\t2026-11-20 23:16:07+00\tf\tbb\t2026-11-20 23:16:07+00\t{{}}\t4\t2\t\\N"
                ),
                format!(
                    "23\tNight\t{news}\t\\N\t\\N\t\\N\t0\t2026-11-20 23:16:07+00\tt\tcc\t2026-11-20 23:16:07+00\t{{}}\t4\t1\t\\N"
                ),
            ],
        ),
        ("epg_epgdata", "id, tvg_id, name, epg_source_id", vec![user("1\tnews.one\tNews One\t1")]),
        (
            "epg_epgsource",
            "id, name, source_type, url",
            vec![user("1\tGuide One\txmltv\thttp://tv.example/epg.xml")],
        ),
        (
            "m3u_m3uaccount",
            "id, name, server_url, max_streams, is_active, created_at, user_agent_id, locked, account_type, username, password, custom_properties, refresh_interval, stale_stream_days, priority",
            vec![
                user("1\tcustom\t\\N\t0\tt\t2026-11-20 23:06:06+00\t\\N\tt\tSTD\t\\N\t\\N\t\\N\t24\t7\t0"),
                format!(
                    "2\tStd One\t{list}\t2\tt\t2026-11-20 23:16:05+00\t1\tf\tSTD\t\\N\t\\N\t{{}}\t0\t7\t0"
                ),
            ],
        ),
        (
            "m3u_m3uaccountprofile",
            "id, name, is_default, max_streams, is_active, search_pattern, replace_pattern, current_viewers, m3u_account_id, custom_properties",
            vec![
                user("1\tcustom Default\tt\t0\tt\t^(.*)$\t$1\t0\t1\t{}"),
                user("2\tStd One Default\tt\t2\tt\t^(.*)$\t$1\t0\t2\t{}"),
            ],
        ),
    ]
}

const HEAD: &str = "--\n-- PostgreSQL database dump\n--\n\n\\restrict aBc\n\nSET statement_timeout = 0;\nSET client_encoding = 'UTF8';\n\n";
const FOOT: &str = "--\n-- PostgreSQL database dump complete\n--\n";

/// Writes `COPY` blocks.
fn copied_tables(tables: &[Table]) -> String {
    let mut text = HEAD.to_owned();
    for (name, columns, rows) in tables {
        writeln!(text, "COPY public.{name} ({columns}) FROM stdin;").unwrap();
        rows.iter().for_each(|row| writeln!(text, "{row}").unwrap());
        text += "\\.\n\n";
    }
    text + FOOT
}

/// An export as `pg_dump` writes it.
pub fn copied(provider: &Provider) -> String {
    copied_tables(&tables(provider))
}

/// An export of a household with the films and series of a panel.
pub fn with_titles(provider: &Provider, panel_url: &str, user: &str, password: &str) -> String {
    let mut tables = tables(provider);
    let accounts = tables.iter_mut().find(|it| it.0 == "m3u_m3uaccount").unwrap();
    accounts.2.push(format!(
        "3\tPanel\t{panel_url}\t1\tt\t2026-11-20 23:16:05+00\t1\tf\tXC\t{user}\t{password}\t{{\"enable_vod\": true}}\t0\t7\t0"
    ));
    let when = "2026-11-20 23:16:07+00\t2026-11-20 23:16:07+00";
    let title = |id: u32, uuid: &str, name: &str, tmdb: &str| {
        format!("{id}\t{uuid}\t{name}\t\\N\t\\N\t\\N\t\\N\t{tmdb}\t\\N\tf\t{{}}\t\\N\t{when}")
    };
    let columns = "id, uuid, name, description, year, rating, genre, tmdb_id, imdb_id, is_adult, custom_properties, logo_id, created_at, updated_at";
    let offer = |id: u32, title: u32, provider: &str, more: &str| {
        format!("{id}\t{title}\t{provider}\t{more}\t{{}}\t{when}\t3")
    };
    tables.extend([
        (
            "vod_vodcategory",
            "id, name, category_type, created_at, updated_at",
            vec![
                format!("41\tAction\tmovie\t{when}"),
                format!("42\tDrama\tmovie\t{when}"),
                format!("43\tCrime\tseries\t{when}"),
            ],
        ),
        (
            "vod_m3uvodcategoryrelation",
            "id, category_id, enabled, m3u_account_id",
            vec!["1\t41\tt\t3".to_owned(), "2\t42\tf\t3".to_owned(), "3\t43\tt\t3".to_owned()],
        ),
        (
            "vod_movie",
            columns,
            vec![
                title(5001, HEAT_UUID, "Heat", "949"),
                title(5002, "8a1f78a1-58a7-458f-9878-8178c06af1b4", "Nobody offers it", "\\N"),
            ],
        ),
        ("vod_series", columns, vec![title(5001, GAMMA_UUID, "Gamma", "\\N")]),
        (
            "vod_episode",
            "id, uuid, name, season_number, episode_number, series_id, created_at",
            vec![
                format!("7001\t{PILOT_UUID}\tPilot\t1\t1\t5001\t2026-11-20 23:16:07+00"),
                format!("7002\tbroken\tSecond\t1\t2\t5001\t2026-11-20 23:16:07+00"),
            ],
        ),
        (
            "vod_m3umovierelation",
            "id, movie_id, stream_id, container_extension, category_id, custom_properties, created_at, updated_at, m3u_account_id",
            vec![offer(1, 5001, "1", "mkv\t41")],
        ),
        (
            "vod_m3useriesrelation",
            "id, series_id, external_series_id, category_id, custom_properties, created_at, updated_at, m3u_account_id",
            vec![offer(1, 5001, "7", "43")],
        ),
        (
            "vod_m3uepisoderelation",
            "id, episode_id, stream_id, container_extension, custom_properties, created_at, updated_at, m3u_account_id",
            vec![offer(1, 7001, "91", "mkv"), offer(2, 7002, "92", "mkv")],
        ),
    ]);
    copied_tables(&tables)
}

/// The same export as `pg_dump --inserts` writes it.
pub fn inserted(provider: &Provider) -> String {
    let mut text = HEAD.to_owned();
    let tables = tables(provider);
    for (name, columns, _) in &tables {
        let columns: Vec<_> = columns.split(", ").map(|it| format!("    {it} text")).collect();
        write!(text, "CREATE TABLE public.{name} (\n{}\n);\n\n", columns.join(",\n")).unwrap();
    }
    for (name, _, rows) in &tables {
        for row in rows {
            let value = |it: &str| match it {
                "\\N" => "NULL".to_owned(),
                "t" => "true".to_owned(),
                "f" => "false".to_owned(),
                it => format!("'{}'", it.replace("\\\\", "\\").replace('\'', "''")),
            };
            let values: Vec<_> = row.split('\t').map(value).collect();
            writeln!(text, "INSERT INTO public.{name} VALUES ({});", values.join(", ")).unwrap();
        }
    }
    text + FOOT
}

/// An export with this many more streams.
pub fn large(provider: &Provider, n_streams: usize) -> String {
    let mut tables = tables(provider);
    let streams = tables.iter_mut().find(|it| it.0 == "dispatcharr_channels_stream").unwrap();
    for id in 0..n_streams {
        let (id, account) = (1000 + id, 1 + id % 2);
        streams.2.push(format!(
            "{id}\tStream {id}\thttp://tv.example/{id}\t\\N\t\\N\t\\N\t0\t\\N\tf\t{id}\t\\N\t{{}}\t4\t{account}\t\\N"
        ));
    }
    copied_tables(&tables)
}

pub fn compressed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}
