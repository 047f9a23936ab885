//! Questions to network tuners: a device that says that all its tuners are in use is asked how many it has.
//!
//! The table sends a question for a host without a login and without a configured limit; [`answer_questions`] asks one
//! device at a time, through the network and the certificates of the account. A device that does not answer changes nothing.

use std::sync::Arc;
use std::time::Duration;

use domain::discovery::device::{DESCRIPTION_BYTES_MAX, DESCRIPTION_PORT, description_urls, stated_tuners};
use domain::egress::Reach;
use domain::source_url::SourceUrl;
use domain::stream::RequestHeaders;
use storage::Models;
use tokio::sync::mpsc;
use tracing::debug;

use super::device_question::{DeviceAddress, DeviceQuestion};
use super::table::SlotTable;
use crate::fetch::{Fetch, FetchError, FetchLimits};
use crate::tasks::{self, RespawnedTask};

/// Maximum time for the answer at one address of a device.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// Starts to ask the devices of a table.
pub(crate) fn ask_devices(table: &Arc<SlotTable>, models: Models, fetch: Fetch) -> RespawnedTask {
    let table = table.clone();
    tasks::respawn("questions to devices", move || {
        let questions = table.device_questions();
        answer_questions(table.clone(), questions, models.clone(), fetch.clone(), DESCRIPTION_PORT)
    })
}

/// Asks devices until the table has another receiver of its questions. `port` is the one on which devices describe
/// themselves.
pub(super) async fn answer_questions(
    table: Arc<SlotTable>,
    mut questions: mpsc::Receiver<DeviceQuestion>,
    models: Models,
    fetch: Fetch,
    port: u16,
) {
    while let Some(DeviceQuestion { pool, address }) = questions.recv().await {
        let account = models.accounts.load().get(pool.account.0).cloned();
        let Some(account) = account else { continue };
        let fetch = fetch.for_account(&account).within(limits(fetch.limits()));
        match tuners(&fetch, &address, port).await {
            Some(n_tuners) => table.tuners_stated(&pool, n_tuners),
            None => debug!(
                account = pool.account_name, profile.id = %pool.profile,
                "the device at {} does not say how many tuners it has", address.url
            ),
        }
    }
}

fn limits(limits: FetchLimits) -> FetchLimits {
    FetchLimits {
        connect_timeout: limits.connect_timeout.min(ANSWER_TIME),
        read_timeout: limits.read_timeout.min(ANSWER_TIME),
        total_timeout: limits.total_timeout.min(ANSWER_TIME),
        bytes_max: limits.bytes_max.min(DESCRIPTION_BYTES_MAX as u64),
    }
}

/// Returns the number of tuners that a device states.
async fn tuners(fetch: &Fetch, address: &DeviceAddress, port: u16) -> Option<u32> {
    let headers = RequestHeaders { user_agent: address.user_agent.clone(), ..RequestHeaders::default() };
    for url in description_urls(&address.url, port) {
        match description(fetch, &url, &headers, address.reach).await {
            Ok(description) => match stated_tuners(&description) {
                Some(n_tuners) => return Some(n_tuners),
                None => debug!("the answer at {url} does not describe a device"),
            },
            Err(error) => debug!("failed to ask the device at {url}: {}", error.with_causes()),
        }
    }
    None
}

async fn description(
    fetch: &Fetch,
    url: &SourceUrl,
    headers: &RequestHeaders,
    reach: Reach,
) -> Result<Vec<u8>, FetchError> {
    fetch.get(url.expose(), headers, reach).await?.whole().await
}
