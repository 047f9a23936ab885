//! Filters of system calls for programs that run code of strangers.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use super::strict::Strictness;

/// Calls that no plugin needs, and that lead to other processes, to other rights or to rarely used parts of the kernel.
const REFUSED: [c_long; 46] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_delete_module,
    libc::SYS_execveat,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    // Its operations do not pass filters of system calls.
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    // A program in memory would be executed without a file that can be refused.
    libc::SYS_memfd_create,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];
/// Calls that succeed without effect: the program stays in its process group, which ends as a whole.
const IGNORED: [c_long; 2] = [libc::SYS_setpgid, libc::SYS_setsid];
/// Flags of `clone` for new namespaces.
const NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;
/// Flag of sending on a socket that is not connected yet.
const FAST_OPEN: u64 = libc::MSG_FASTOPEN.unsigned_abs() as u64;
/// Protocols that behave like TCP and that rules for TCP ports do not know.
const LIKE_TCP: [i32; 2] = [libc::IPPROTO_SCTP, 262];
/// Bit of the numbers of a second table of the same calls.
#[cfg(target_arch = "x86_64")]
const X32: c_long = 0x4000_0000;

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Filters the calls of the current thread, which then executes the program. Needs `no_new_privs`.
pub(super) fn apply(strictness: &Strictness) -> Result<(), Error> {
    let mut refused: Rules = REFUSED.into_iter().map(|it| (it, Vec::new())).collect();
    refused.insert(libc::SYS_clone, namespaces()?);
    refused.insert(libc::SYS_socket, sockets(strictness)?);
    if !strictness.connects {
        refused.insert(libc::SYS_connect, Vec::new());
        // Sending can connect.
        for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            refused.insert(call, vec![rule(flags, SeccompCmpOp::MaskedEq(FAST_OPEN), FAST_OPEN)?]);
        }
    }
    // Programs then use `clone`, whose flags can be judged.
    let unknown: Rules = [(libc::SYS_clone3, Vec::new())].into();
    let ignored: Rules = IGNORED.into_iter().map(|it| (it, Vec::new())).collect();
    for (rules, errno) in [(ignored, 0), (unknown, libc::ENOSYS), (refused, libc::EPERM)] {
        apply_filter(&compile(rules, errno.unsigned_abs())?)?;
    }
    Ok(())
}

/// Returns the filter that answers these calls with an error number and allows all others.
fn compile(rules: Rules, errno: u32) -> Result<BpfProgram, Error> {
    #[cfg(target_arch = "x86_64")]
    let rules: Rules =
        rules.into_iter().flat_map(|(call, rules)| [(call, rules.clone()), (call | X32, rules)]).collect();
    let architecture = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno), architecture)?;
    Ok(filter.try_into()?)
}

/// Matches `clone` with a flag for a new namespace.
fn namespaces() -> Result<Vec<SeccompRule>, Error> {
    let flags = (0..i32::BITS).map(|bit| 1_u64 << bit);
    let flags = flags.filter(|it| u64::from(NAMESPACES.unsigned_abs()) & it != 0);
    let rule = |flag| rule(0, SeccompCmpOp::MaskedEq(flag), flag);
    flags.map(rule).collect()
}

/// Matches `socket` for what is refused. No program of this kind gets local sockets, over which services of the system
/// would act for it; pairs of sockets have another call. An empty list matches all.
fn sockets(strictness: &Strictness) -> Result<Vec<SeccompRule>, Error> {
    let [inet, inet6, unix] =
        [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX].map(|it| u64::from(it.unsigned_abs()));
    let mut rules = vec![rule(0, SeccompCmpOp::Eq, unix)?];
    for protocol in LIKE_TCP {
        rules.push(rule(2, SeccompCmpOp::Eq, u64::from(protocol.unsigned_abs()))?);
    }
    if strictness.connects {
        return Ok(rules);
    }
    if strictness.ports.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Vec::new());
    }
    // It accepts connections, so it has sockets for TCP and no others.
    let other_family = vec![condition(0, SeccompCmpOp::Ne, inet)?, condition(0, SeccompCmpOp::Ne, inet6)?];
    rules.push(SeccompRule::new(other_family)?);
    // The type is 1 with flags in higher bits.
    rules.push(rule(1, SeccompCmpOp::MaskedEq(1), 0)?);
    for bit in [2, 4, 8] {
        rules.push(rule(1, SeccompCmpOp::MaskedEq(bit), bit)?);
    }
    Ok(rules)
}

fn rule(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, Error> {
    Ok(SeccompRule::new(vec![condition(argument, operator, value)?])?)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, Error> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_of_all_permissions_compile() {
        let refused: Rules = REFUSED.into_iter().map(|it| (it, Vec::new())).collect();
        assert_eq!(refused.len(), REFUSED.len(), "no call is listed twice");
        assert!(!compile(refused, 1).unwrap().is_empty());
        assert_eq!(namespaces().unwrap().len(), 7);
        let strict = |connects, ports: &[u16]| Strictness {
            connects,
            ports: Some(ports.to_vec()),
            ..Strictness::default()
        };
        assert!(sockets(&strict(false, &[])).unwrap().is_empty(), "all sockets are refused");
        for (connects, ports) in [(false, &[9_000][..]), (true, &[])] {
            let rules = sockets(&strict(connects, ports)).unwrap();
            let rules: Rules = [(libc::SYS_clone, namespaces().unwrap()), (libc::SYS_socket, rules)].into();
            assert!(compile(rules, 1).unwrap().len() > 14);
        }
    }
}
