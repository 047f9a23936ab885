//! `headwater serve`: runs the gateway on its store.

use std::fmt::Write;

use crate::config::Config;
use crate::data::{DataError, DataFolder};
use crate::gateway::{Gateway, Runtimes, StartError};
use crate::play::{addresses_text, say};

/// Error that prevents `serve` from starting.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Opens the store, starts the gateway, and prints its addresses and the next steps.
pub async fn serve(config: Config, runtimes: Runtimes) -> Result<Gateway, ServeError> {
    let folder = DataFolder::new(&config.data_dir);
    let opening = {
        let folder = folder.clone();
        runtimes.work.spawn_blocking(move || folder.open())
    };
    let store = opening.await.map_err(|_| StartError::Runtime)??;
    let gateway = Gateway::start(config, store, runtimes).await?;
    say(&text(&gateway, &folder));
    Ok(gateway)
}

fn text(gateway: &Gateway, folder: &DataFolder) -> String {
    let models = gateway.models();
    let channels = models.channels.load();
    let mut text = addresses_text(gateway, channels.iter().find(|it| it.enabled).map(|it| &**it));
    let root = folder.root().display();
    writeln!(text, "Data                  {root}, {} channels", channels.len())
        .expect("writing to a String cannot fail");
    if models.users.load().is_empty() {
        writeln!(
            text,
            "\nNo users exist yet. Stop Headwater, create the first user, and start Headwater again:\n  \
             headwater --data-dir {root} user add admin --superuser"
        )
        .expect("writing to a String cannot fail");
    }
    text
}
