//! The sandbox, tried from inside: each check starts this program once more, as a child that enters it and
//! tries one thing. A sandbox is for good and wants a process of one thread, which a test harness is not.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "sandbox/attempt.rs"]
mod attempt;

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

const EPERM: &str = "refused: Some(1)";
const EACCES: &str = "refused: Some(13)";
const EXDEV: &str = "refused: Some(18)";
const ALLOWED: &str = "allowed";

fn main() {
    if std::env::args().nth(1).as_deref() == Some("try") {
        return attempt::run(std::env::args().skip(2));
    }
    if !has_landlock() {
        println!("SKIPPED: this kernel has no Landlock, so that the sandbox is only refused here");
        return a_kernel_without_landlock_is_named();
    }
    let checks: &[(&str, fn())] = &[
        (
            "reads_what_is_allowed_and_nothing_else",
            reads_what_is_allowed_and_nothing_else,
        ),
        (
            "a_single_file_can_be_read_without_its_neighbours",
            a_single_file_can_be_read_without_its_neighbours,
        ),
        ("other_processes_are_closed", other_processes_are_closed),
        ("writes_inside_the_folder_only", writes_inside_the_folder_only),
        ("nothing_is_moved_in_or_out", nothing_is_moved_in_or_out),
        (
            "files_outside_are_not_emptied_and_keep_their_modes",
            files_outside_are_not_emptied_and_keep_their_modes,
        ),
        ("the_network_is_closed", the_network_is_closed),
        (
            "unix_sockets_are_for_the_cuda_driver_only",
            unix_sockets_are_for_the_cuda_driver_only,
        ),
        (
            "threads_are_named_through_files_by_the_cuda_driver_only",
            threads_are_named_through_files_by_the_cuda_driver_only,
        ),
        ("no_other_program_runs", no_other_program_runs),
        ("ways_round_are_closed", ways_round_are_closed),
        ("ordinary_work_goes_on", ordinary_work_goes_on),
        ("a_second_thread_is_refused", a_second_thread_is_refused),
        ("a_missing_path_is_named", a_missing_path_is_named),
        (
            "a_kernel_without_landlock_is_named",
            a_kernel_without_landlock_is_named,
        ),
    ];
    for (name, check) in checks {
        check();
        println!("test {name} ... ok");
    }
}

/// True if the kernel can confine a process to files.
fn has_landlock() -> bool {
    TestFolders::new().child(&[], &["stat", "/"]) == ALLOWED
}

/// `in/clip` and `in/link` (to `secret`), `out`, `secret` beside them.
struct TestFolders(tempfile::TempDir);

impl TestFolders {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["in", "out", "elsewhere"] {
            fs::create_dir(at(name)).unwrap();
        }
        for name in ["in/clip", "in/other", "out/old", "secret", "elsewhere/file"] {
            fs::write(at(name), "text").unwrap();
        }
        symlink(at("secret"), at("in/link")).unwrap();
        symlink(at("in/other"), at("in/inner")).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// What the child says. An argument that begins with `@` is a path of the house.
    fn child(&self, flags: &[&str], action: &[&str]) -> String {
        let own = |text: &&str| {
            text.strip_prefix('@')
                .map_or((*text).to_owned(), |name| self.path(name))
        };
        let output = Command::new(std::env::current_exe().unwrap())
            .arg("try")
            .args(flags.iter().map(own))
            .args(action.iter().map(own))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(output.status.success(), "{flags:?} {action:?}: {text} {output:?}");
        text.trim().to_owned()
    }

    /// Checks an action inside the sandbox, on the first thread and on a second. Where it is refused, it must
    /// be possible without a sandbox: else the test shows nothing.
    fn expect(&self, action: &[&str], expected: &str) {
        let inside = ["--read", "@in", "--write", "@out"];
        assert_eq!(self.child(&inside, action), expected, "{action:?}");
        let threaded = Self::new();
        assert_eq!(
            threaded.child(&[&inside[..], &["--thread"]].concat(), action),
            expected,
            "{action:?}"
        );
        if expected != ALLOWED {
            assert_eq!(
                Self::new().child(&["--open"], action),
                ALLOWED,
                "{action:?} without a sandbox"
            );
        }
    }
}

fn reads_what_is_allowed_and_nothing_else() {
    let folders = TestFolders::new();
    folders.expect(&["read", "@in/clip"], ALLOWED);
    folders.expect(&["list", "@in"], ALLOWED);
    folders.expect(&["read", "@in/inner"], ALLOWED);
    folders.expect(&["read", "@in/link"], EACCES);
    folders.expect(&["read", "@in/../secret"], EACCES);
    folders.expect(&["read", "@secret"], EACCES);
    folders.expect(&["list", "@"], EACCES);
    folders.expect(&["read", "/etc/passwd"], EACCES);
    folders.expect(&["read", "/proc/self/root/etc/passwd"], EACCES);
    folders.expect(&["list", "/proc"], EACCES);
    folders.expect(&["stat", "/etc/passwd"], ALLOWED);
}

fn a_single_file_can_be_read_without_its_neighbours() {
    let folders = TestFolders::new();
    let flags = ["--read", "@in/clip"];
    assert_eq!(folders.child(&flags, &["read", "@in/clip"]), ALLOWED);
    assert_eq!(folders.child(&flags, &["read", "@in/other"]), EACCES);
    assert_eq!(folders.child(&flags, &["list", "@in"]), EACCES);
    assert_eq!(folders.child(&flags, &["write", "@in/clip"]), EACCES);
    // An allowed link is what it leads to.
    assert_eq!(
        folders.child(&["--read", "@in/link"], &["read", "@secret"]),
        ALLOWED
    );
}

fn other_processes_are_closed() {
    let folders = TestFolders::new();
    // Root only may read it; the tests are at home in containers, whose user is root.
    if fs::read("/proc/1/environ").is_ok() {
        folders.expect(&["read", "/proc/1/environ"], EACCES);
    } else {
        assert_eq!(folders.child(&[], &["read", "/proc/1/environ"]), EACCES);
    }
    let parent = std::process::id().to_string();
    folders.expect(&["read", &format!("/proc/{parent}/environ")], EACCES);
    folders.expect(&["call", &libc::SYS_kill.to_string(), &parent, "0"], EPERM);
    folders.expect(
        &[
            "call",
            &libc::SYS_process_vm_readv.to_string(),
            &parent,
            "0",
            "0",
            "0",
            "0",
        ],
        EPERM,
    );
}

fn writes_inside_the_folder_only() {
    let folders = TestFolders::new();
    folders.expect(&["write", "@out/new"], ALLOWED);
    folders.expect(&["write", "@out/old"], ALLOWED);
    folders.expect(&["part", "@out/part", "@out/old"], ALLOWED);
    folders.expect(&["folder", "@out/made"], ALLOWED);
    folders.expect(&["own-modes", "@out/new"], ALLOWED);
    folders.expect(&["hard-link", "@out/old", "@out/again"], ALLOWED);
    folders.expect(&["remove", "@out/old"], ALLOWED);

    folders.expect(&["write", "@elsewhere/new"], EACCES);
    folders.expect(&["write", "@elsewhere/file"], EACCES);
    folders.expect(&["write", "@in/clip"], EACCES);
    folders.expect(&["write", "@in/link"], EACCES);
    folders.expect(&["folder", "@in/made"], EACCES);
    folders.expect(&["remove", "@elsewhere/file"], EACCES);
    folders.expect(&["link", "/etc/passwd", "@out/link"], EACCES);
    folders.expect(&["listen", "@out/socket"], EPERM);
    assert_eq!(fs::read_to_string(folders.path("secret")).unwrap(), "text");
    assert_eq!(
        fs::read_to_string(folders.path("elsewhere/file")).unwrap(),
        "text"
    );
}

fn nothing_is_moved_in_or_out() {
    let moves = [
        ["rename", "@out/old", "@elsewhere/old"],
        ["rename", "@elsewhere/file", "@out/file"],
        ["hard-link", "@secret", "@out/mine"],
        ["hard-link", "@in/clip", "@out/mine"],
    ];
    for action in moves {
        let folders = TestFolders::new();
        let said = folders.child(&["--read", "@in", "--write", "@out"], &action);
        assert!(said == EACCES || said == EXDEV, "{action:?}: {said}");
    }
}

fn files_outside_are_not_emptied_and_keep_their_modes() {
    let folders = TestFolders::new();
    folders.expect(&["empty", "@in/clip"], EPERM);
    folders.expect(&["empty", "@secret"], EPERM);
    folders.expect(&["modes", "@secret"], EPERM);
    // Allowed in Landlock's eyes, so it is the filter that refuses: older kernels are covered too.
    folders.expect(&["empty", "@out/old"], EPERM);
    folders.expect(&["modes", "@out/old"], EPERM);
}

fn the_network_is_closed() {
    let folders = TestFolders::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp_at, udp_at) = (
        tcp.local_addr().unwrap().to_string(),
        udp.local_addr().unwrap().to_string(),
    );
    folders.expect(&["tcp", &tcp_at], EPERM);
    folders.expect(&["udp", &udp_at], EPERM);
    let netlink = [
        "call",
        &libc::SYS_socket.to_string(),
        &libc::AF_NETLINK.to_string(),
        "3",
        "0",
    ];
    folders.expect(&netlink, EPERM);
    for action in [&["tcp", &tcp_at][..], &["udp", &udp_at], &netlink] {
        assert_eq!(folders.child(&["--devices"], action), EPERM, "{action:?}");
    }
}

fn unix_sockets_are_for_the_cuda_driver_only() {
    let folders = TestFolders::new();
    let _listener = UnixListener::bind(folders.path("service")).unwrap();
    assert_eq!(folders.child(&[], &["unix", "@service"]), EPERM);
    assert_eq!(folders.child(&["--open"], &["unix", "@service"]), ALLOWED);
    assert_eq!(folders.child(&["--devices"], &["unix", "@service"]), ALLOWED);
    folders.expect(&["pair"], ALLOWED);
}

fn threads_are_named_through_files_by_the_cuda_driver_only() {
    let folders = TestFolders::new();
    folders.expect(&["name-thread"], EACCES);
    assert_eq!(folders.child(&["--devices"], &["name-thread"]), ALLOWED);
}

fn no_other_program_runs() {
    let folders = TestFolders::new();
    folders.expect(&["run", "/bin/true"], EPERM);
    assert_eq!(
        folders.child(&["--devices", "--read", "/usr/bin"], &["run", "/bin/true"]),
        EPERM
    );
}

fn ways_round_are_closed() {
    let folders = TestFolders::new();
    let eperm = |number: libc::c_long, values: &[&str]| {
        let number = number.to_string();
        let action = [&["call", &number][..], values].concat();
        assert_eq!(folders.child(&[], &action), EPERM, "{action:?}");
        assert_ne!(
            folders.child(&["--open"], &action),
            EPERM,
            "{action:?} without a sandbox"
        );
    };
    eperm(libc::SYS_io_uring_setup, &["0", "0"]);
    eperm(libc::SYS_openat2, &["-100", "0", "0", "0"]);
    eperm(libc::SYS_truncate, &["0", "0"]);
    eperm(libc::SYS_prlimit64, &["1", "7", "0", "0"]);
    eperm(libc::SYS_utimensat, &["-100", "1", "0", "0"]);
    eperm(libc::SYS_ioctl, &["0", "21522", "0"]);
    // The upper half of the register is ignored by the kernel, and must be by the filter.
    #[cfg(target_arch = "x86_64")]
    {
        eperm(libc::SYS_socket | 0x4000_0000, &["2", "1", "0"]);
        eperm(545 + 0x4000_0000, &["0", "0", "0", "0", "0"]);
        let family = (1_i64 << 32 | 2).to_string();
        assert_eq!(
            folders.child(&["--devices"], &["call", "41", &family, "1", "0"]),
            EPERM
        );
        assert_eq!(
            folders.child(&["--open"], &["call", "41", &family, "1", "0"]),
            ALLOWED
        );
    }
}

fn ordinary_work_goes_on() {
    let folders = TestFolders::new();
    folders.expect(&["ordinary"], ALLOWED);
    assert_eq!(folders.child(&["--devices"], &["ordinary"]), ALLOWED);
}

fn a_second_thread_is_refused() {
    let said = TestFolders::new().child(&["--busy"], &["ordinary"]);
    assert!(
        said.starts_with("no sandbox: the program has 2 threads already"),
        "{said}"
    );
}

fn a_missing_path_is_named() {
    let said = TestFolders::new().child(&["--read", "@nowhere"], &["ordinary"]);
    assert!(
        said.starts_with("no sandbox: cannot allow /") && said.contains("nowhere"),
        "{said}"
    );
    assert!(said.contains("No such file"), "{said}");
}

fn a_kernel_without_landlock_is_named() {
    let folders = TestFolders::new();
    for (errno, text) in [
        (libc::ENOSYS, "the kernel has no Landlock"),
        (libc::EOPNOTSUPP, "not enabled at boot"),
    ] {
        let said = folders.child(&["--hide", &errno.to_string()], &["ordinary"]);
        assert!(
            said.contains("this system cannot confine the program") && said.contains(text),
            "{said}"
        );
    }
}
