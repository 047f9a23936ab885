//! Changes of many dead letters.

use domain::ids::DeliveryId;
use domain::integration::Delivery;

use super::filter::DeliveryFilter;
use crate::clock::now_ms;

/// Some dead letters.
#[derive(Debug, Clone)]
pub struct DeadLetters {
    pub(super) ids: Vec<DeliveryId>,
    pub(super) filter: DeliveryFilter,
}

impl DeadLetters {
    /// Lets them be attempted again, as if their events had happened now. Returns how many there still were.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn replay(self, write: &mut storage::Write<'_>) -> storage::Result<usize> {
        let now = now_ms();
        self.change(write, |write, mut delivery| {
            delivery.replay(now);
            write.put(&delivery)
        })
    }

    /// Deletes them. Returns how many there still were.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn delete(self, write: &mut storage::Write<'_>) -> storage::Result<usize> {
        self.change(write, |write, delivery| write.remove::<Delivery>(delivery.id.0).map(drop))
    }

    fn change(
        self,
        write: &mut storage::Write<'_>,
        change: impl Fn(&mut storage::Write<'_>, Delivery) -> storage::Result<()>,
    ) -> storage::Result<usize> {
        let mut n_changed = 0;
        for id in &self.ids {
            let delivery = write.get::<Delivery>(id.0)?;
            if let Some(delivery) = delivery.filter(|it| self.filter.selects(it)) {
                change(write, delivery)?;
                n_changed += 1;
            }
        }
        Ok(n_changed)
    }
}
