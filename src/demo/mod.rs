//! `headwater demo`: a gateway with a built-in source, so that a new user sees a channel play within seconds and can
//! try failover.
//!
//! The source is an HTTP server on loopback that plays embedded clips in real time and in an endless loop, and that can
//! be stopped and started. The gateway treats it like any provider, with two playlists and two accounts.

mod source;

use std::net::SocketAddr;

use actors::now_ms;
use config::Config;
use domain::ids::UserId;
use domain::playlist::catalogue::{Catalogue, CatalogueBuilder};
use domain::playlist::m3u::{PlaylistItem, PlaylistLimits, PlaylistParser};
use domain::stream::RequestHeaders;
use domain::user::{User, UserLevel};
use media::spawn_blocking;
use rest::demo::Demo;
use services::addresses::stream_address;
use services::auth::hash_password;
use storage::Store;
use uuid::Uuid;

pub use self::source::Source;
use self::source::SourceError;
use crate::gateway::{Gateway, Runtimes, StartError};
use crate::play::{addresses_text, player_origin, temporary};
use crate::terminal::say;

/// One embedded clip.
pub(crate) struct Feature {
    /// Name in URLs.
    pub(crate) name: &'static str,
    /// Name of the channel that the clip belongs to.
    channel: &'static str,
    bytes: &'static [u8],
}

/// The clips, two for each channel. The first of a channel is preferred.
pub(crate) const FEATURES: [Feature; 6] = [
    Feature { name: "testcard-a", channel: "Test Card", bytes: include_bytes!("testcard-a.ts") },
    Feature { name: "testcard-b", channel: "Test Card", bytes: include_bytes!("testcard-b.ts") },
    Feature { name: "fractal-a", channel: "Fractal", bytes: include_bytes!("fractal-a.ts") },
    Feature { name: "fractal-b", channel: "Fractal", bytes: include_bytes!("fractal-b.ts") },
    Feature { name: "colours-a", channel: "Colours", bytes: include_bytes!("colours-a.ts") },
    Feature { name: "colours-b", channel: "Colours", bytes: include_bytes!("colours-b.ts") },
];

/// Name of the admin of the demo.
const ADMIN: &str = "demo";

/// Error that prevents the demo from starting.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("failed to start the built-in source")]
    Source(#[from] SourceError),
    #[error(transparent)]
    Store(#[from] storage::Error),
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Starts the source and a gateway for it, and prints commands to try.
pub async fn run(
    config: Config,
    source_listen: SocketAddr,
    runtimes: Runtimes,
) -> Result<(Gateway, Source), DemoError> {
    let source = Source::start(source_listen, &runtimes).await?;
    let catalogue = catalogue(source.address());
    let channels = catalogue.channels.clone();
    let store = temporary(catalogue).await?;
    // Nobody but browsers on this machine needs no password; it is printed for all others.
    let password = Uuid::new_v4().simple().to_string();
    let admin = create_admin(&store, &password).await?;
    let mut gateway = Gateway::start(config, store, runtimes.clone()).await?;
    gateway.keep_temporary_history(&runtimes);
    gateway.show_demo(Demo { admin, switches: source.switches() });

    let player = player_origin(&gateway);
    let mut text = format!(
        "Open {player}/ in a browser on this machine to see the demo.\n\
         From another machine, sign in as {ADMIN} with the password {password}\n\n\
         Three channels are running, each with a stream A and a backup stream B.\n\n"
    );
    for channel in &channels {
        text += &format!("  {:<10} {}\n", channel.name, stream_address(&player, channel));
    }
    let first = stream_address(&player, &channels[0]);
    text += &format!(
        "\nWatch the first channel with one of these commands:\n  ffplay {first}\n  vlc {first}\n  ffprobe {first}\n"
    );
    text += "\nStop a stream to see its channel fail over to the other one, then start it again:\n";
    for feature in &FEATURES {
        text += &format!("  curl -X POST {}\n", source.control(feature.name, "stop"));
        text += &format!("  curl -X POST {}\n", source.control(feature.name, "start"));
    }
    say(&format!("{text}\n{}", addresses_text(&gateway, Some(&channels[0]))));
    Ok((gateway, source))
}

/// Creates the admin of the demo.
async fn create_admin(store: &Store, password: &str) -> Result<UserId, storage::Error> {
    let user = User { is_superuser: true, ..User::new(UserId(1), ADMIN, UserLevel::Admin, now_ms()) };
    let (id, password) = (user.id, password.to_owned());
    let hash = spawn_blocking(move || hash_password(&password)).await;
    let user = User { password: Some(hash.map_err(|_| storage::Error::Panicked)?), ..user };
    store.write(move |write| write.put(&user)).await?;
    Ok(id)
}

/// Builds the channels of the source at this address from two playlists, as if from two providers.
pub fn catalogue(source: SocketAddr) -> Catalogue {
    let mut catalogue = CatalogueBuilder::new();
    for (account, suffix) in [("demo provider A", "-a"), ("demo provider B", "-b")] {
        let account = catalogue.account(account, 0, RequestHeaders::default());
        let mut parser = PlaylistParser::new(PlaylistLimits::default());
        let mut take = |item| {
            if let PlaylistItem::Entry(entry) = item {
                catalogue.entry(account, entry);
            }
        };
        parser.push(playlist(source, suffix).as_bytes(), &mut take);
        parser.finish(&mut take);
    }
    catalogue.build()
}

fn playlist(source: SocketAddr, suffix: &str) -> String {
    let mut text = "#EXTM3U\n".to_owned();
    for feature in FEATURES.iter().filter(|it| it.name.ends_with(suffix)) {
        let Feature { name, channel, .. } = feature;
        let id = name.trim_end_matches(suffix);
        text += &format!("#EXTINF:-1 tvg-id=\"{id}.demo\" group-title=\"Demo\",{channel}\n");
        text += &format!("http://{source}/{name}.ts\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_has_three_channels_with_two_streams_each() {
        let catalogue = catalogue("127.0.0.1:1".parse().unwrap());
        let channels: Vec<_> =
            catalogue.channels.iter().map(|it| (it.name.as_str(), it.streams.len())).collect();
        assert_eq!(channels, [("Test Card", 2), ("Fractal", 2), ("Colours", 2)]);
    }

    #[test]
    fn demo_channels_keep_their_uuids_between_runs() {
        let uuids =
            |port| catalogue(SocketAddr::from(([127, 0, 0, 1], port))).channels.into_iter().map(|it| it.uuid);
        assert!(uuids(1).eq(uuids(2)));
    }
}
