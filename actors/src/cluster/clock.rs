//! The clock of the cluster's rules: monotonic, and running while the machine is suspended.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use domain::cluster::BootTime;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A clock with a timer.
#[derive(Debug)]
pub(super) enum BootClock {
    /// `CLOCK_BOOTTIME`. A timer of tokio would be late after a suspend by the time of the suspend.
    Kernel(AsyncFd<OwnedFd>),
    /// The time of tokio, which tests can pause.
    #[cfg(test)]
    Tokio(tokio::time::Instant),
}

/// Reads the clock of the rules, without its timer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BootTimeReader {
    Kernel,
    #[cfg(test)]
    Tokio(tokio::time::Instant),
}

impl BootTimeReader {
    pub(crate) fn now(self) -> BootTime {
        match self {
            Self::Kernel => {
                let now = clock_gettime(ClockId::Boottime);
                let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
                let nanos = u32::try_from(now.tv_nsec).unwrap_or_default();
                BootTime(Duration::new(seconds, nanos))
            }
            #[cfg(test)]
            Self::Tokio(begin) => BootTime(begin.elapsed()),
        }
    }
}

impl BootClock {
    #[expect(
        deprecated,
        reason = "an owned descriptor stays the same, which the successor of `new` wants to be promised"
    )]
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        AsyncFd::new(timer).map(Self::Kernel)
    }

    pub(super) fn now(&self) -> BootTime {
        match self {
            Self::Kernel(_) => BootTimeReader::Kernel.now(),
            #[cfg(test)]
            Self::Tokio(begin) => BootTimeReader::Tokio(*begin).now(),
        }
    }

    /// Waits until a time. `None`: for ever.
    pub(super) async fn wait_until(&self, at: Option<BootTime>) {
        let Some(at) = at else { return pending().await };
        match self {
            Self::Kernel(timer) => {
                // Zero would disarm the timer.
                let at = at.0.max(Duration::from_nanos(1));
                let it_value = Timespec {
                    tv_sec: at.as_secs().try_into().unwrap_or(i64::MAX),
                    tv_nsec: at.subsec_nanos().into(),
                };
                let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
                // Setting it anew also forgets an expiry that nobody has waited for.
                let set =
                    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value });
                if set.is_ok()
                    && let Ok(mut ready) = timer.readable().await
                {
                    ready.clear_ready();
                } else {
                    // Never seen; the rules stay safe, because they look at the clock first.
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
            #[cfg(test)]
            Self::Tokio(begin) => tokio::time::sleep_until(*begin + at.0).await,
        }
    }
}
