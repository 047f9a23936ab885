//! `headwater serve`: runs the gateway on its store.

use std::fmt::Write;
use std::time::Duration;

use storage::Store;

use crate::config::Config;
use crate::data::{DataError, DataFolder};
use crate::gateway::{Gateway, Runtimes, StartError};
use crate::play::{addresses_text, local_authority, say};

/// Error that prevents `serve` from starting.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Opens the store, starts the gateway, and prints its addresses and the next steps.
///
/// A restart waits for the last readers of the store that was closed before.
pub async fn serve(config: Config, runtimes: Runtimes, is_restart: bool) -> Result<Gateway, ServeError> {
    let folder = DataFolder::new(&config.data_dir);
    let opening = {
        let folder = folder.clone();
        runtimes.work.spawn_blocking(move || open(&folder, is_restart))
    };
    let store = opening.await.map_err(|_| StartError::Runtime)??;
    let mut gateway = Gateway::start(config, store, runtimes.clone()).await?;
    gateway.open_control_socket(&folder);
    gateway.enable_backups(&runtimes);
    say(&text(&gateway, &folder));
    Ok(gateway)
}

/// Opens the store, and tries again for some seconds after a restart.
fn open(folder: &DataFolder, is_restart: bool) -> Result<Store, DataError> {
    const PAUSE: Duration = Duration::from_millis(100);
    let mut n_tries = if is_restart { 100 } else { 1 };
    loop {
        n_tries -= 1;
        match folder.open() {
            Err(DataError::Store(storage::Error::AlreadyRunning(_))) if n_tries > 0 => {
                std::thread::sleep(PAUSE)
            }
            opened => return opened,
        }
    }
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
