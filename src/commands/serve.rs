//! `headwater serve`: runs the gateway on its store.

use std::fmt::Write;
use std::io;
use std::sync::Arc;

use config::{Config, DataFolder};
use node::joining::{self, JoinError};
use services::open_store::{DataError, open_store};

use crate::gateway::{Gateway, Runtimes, StartError};
use crate::handover::{Listeners, TakeOver};
use crate::play::{addresses_text, local_authority};
use crate::terminal::say;

/// Error that prevents `serve` from starting.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error("the running gateway did not hand over")]
    TakeOver(#[source] io::Error),
}

/// Opens the store, starts the gateway, and prints its addresses and the next steps. With sockets of a running gateway, it
/// waits until that has closed the store. With a token, this machine joins a cluster first.
pub async fn serve(
    config: Config,
    runtimes: Runtimes,
    from: Option<(Arc<TakeOver>, Listeners)>,
    join_token: Option<&str>,
) -> Result<Gateway, ServeError> {
    let folder = DataFolder::new(&config.data_dir);
    // A gateway that is replaced has joined before.
    if from.is_none() {
        joining::prepare(&config, &folder, join_token).await?;
    }
    let from = match from {
        // Before the running gateway stops, because this is where most starts fail.
        Some((take_over, theirs)) => {
            let listeners = Listeners::bind(&config, Some(theirs)).map_err(StartError::from)?;
            let waiting = Arc::clone(&take_over);
            let waited = runtimes.work.spawn_blocking(move || waiting.wait_for_store());
            let theirs = waited.await.map_err(|_| StartError::Runtime)?.map_err(ServeError::TakeOver)?;
            Some((take_over, (listeners, theirs)))
        }
        None => None,
    };
    let opening = {
        let folder = folder.clone();
        runtimes.work.spawn_blocking(move || open_store(&folder))
    };
    let store = opening.await.map_err(|_| StartError::Runtime)??;
    let (take_over, listeners) = from.unzip();
    let mut gateway = match listeners {
        Some((listeners, theirs)) => {
            let predecessor = take_over.clone().zip(theirs);
            Gateway::start_on(listeners, predecessor, config, store, runtimes.clone()).await?
        }
        None => Gateway::start(config, store, runtimes.clone()).await?,
    };
    gateway.open_control_socket(&folder);
    gateway.enable_backups(&runtimes);
    gateway.keep_history(&runtimes);
    say(&text(&gateway, &folder));
    if let Some(take_over) = take_over {
        take_over.ready();
    }
    Ok(gateway)
}

fn text(gateway: &Gateway, folder: &DataFolder) -> String {
    let models = gateway.models();
    let channels = models.channels.load();
    let mut text = addresses_text(gateway, channels.iter().find(|it| it.enabled).map(|it| &**it));
    let root = folder.root().display();
    writeln!(text, "Data                  {root}, {} channels", channels.len())
        .expect("writing to a String cannot fail");
    if let Some(code) = gateway.setup_code() {
        // Behind `#`, because browsers send that part neither in a request nor as `Referer`.
        let (address, code) = (local_authority(gateway.player_addr()), code.expose());
        writeln!(
            text,
            "\nNo admin exists yet. Open this address to create the first one:\n  \
             http://{address}/setup#{code}\n\
             From another machine, use the address of this machine. Or run this command here:\n  \
             headwater --data-dir {root} user add admin --superuser"
        )
        .expect("writing to a String cannot fail");
    }
    text
}
