/* Disks and clocks with faults, for programs that preload this library. By variables:

   FAULTS_NO_LINKS    link() fails with EPERM, as on SMB, exFAT and in folders of object stores;
   FAULTS_CLOCK       seconds that the clock of this program is ahead;
   FAULTS_FOLDER      the folder in which calls are counted: writes, flushes, new names, mappings;
   FAULTS_COUNTER     a file of 8 zero bytes, which all processes of a command count in;
   FAULTS_AT          the number, from 1, of the call that fails; 0 for none;
   FAULTS_ERRNO       its error;
   FAULTS_LOG         a file that gets the name of the call that failed. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PLAIN(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static long number_of(const char *variable) {
    const char *value = getenv(variable);
    return value && *value ? atol(value) : 0;
}

/* Tell whether a path lies in the folder that is watched. */
static int is_watched(const char *path) {
    const char *folder = getenv("FAULTS_FOLDER");
    char whole[PATH_MAX];
    if (!folder || !path) return 0;
    if (path[0] != '/') {
        if (!getcwd(whole, sizeof whole - strlen(path) - 2)) return 0;
        strcat(strcat(whole, "/"), path);
        path = whole;
    }
    return strncmp(path, folder, strlen(folder)) == 0;
}

/* Count a call; tell whether it is the one that fails. */
static int fails(const char *call, const char *path) {
    static volatile long *counter;
    static __typeof__(&mmap) plain_mmap;
    if (!is_watched(path)) return 0;
    if (!counter) {
        int descriptor = open(getenv("FAULTS_COUNTER"), O_RDWR | O_CLOEXEC);
        if (descriptor < 0) return 0;
        plain_mmap = PLAIN(mmap);
        counter = plain_mmap(0, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        close(descriptor);
    }
    if (__sync_add_and_fetch(counter, 1) != number_of("FAULTS_AT")) return 0;
    FILE *log = fopen(getenv("FAULTS_LOG"), "w");
    if (log) {
        fprintf(log, "%s %s\n", call, path);
        fclose(log);
    }
    errno = (int)number_of("FAULTS_ERRNO");
    return 1;
}

static int fails_at(const char *call, int descriptor) {
    char name[64], path[PATH_MAX];
    int saved = errno;
    if (!getenv("FAULTS_FOLDER")) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(name, path, sizeof path - 1);
    errno = saved;
    if (size < 0 || path[0] != '/') return 0; /* A pipe or a socket has no path. */
    path[size] = 0;
    return fails(call, path);
}

ssize_t write(int descriptor, const void *data, size_t size) {
    static __typeof__(&write) plain;
    if (!plain) plain = PLAIN(write);
    if (fails_at("write", descriptor)) return -1;
    return plain(descriptor, data, size);
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t place) {
    if (fails_at("pwrite", descriptor)) return -1;
    return PLAIN(pwrite)(descriptor, data, size, place);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    if (fails_at("writev", descriptor)) return -1;
    return PLAIN(writev)(descriptor, parts, count);
}

int fsync(int descriptor) {
    if (fails_at("fsync", descriptor)) return -1;
    return 0; /* Flushing shows only after a loss of power, but takes long. */
}

int fdatasync(int descriptor) {
    if (fails_at("fdatasync", descriptor)) return -1;
    return 0;
}

int ftruncate(int descriptor, off_t size) {
    if (fails_at("ftruncate", descriptor)) return -1;
    return PLAIN(ftruncate)(descriptor, size);
}

int ftruncate64(int descriptor, off64_t size) {
    if (fails_at("ftruncate", descriptor)) return -1;
    return PLAIN(ftruncate64)(descriptor, size);
}

void *mmap(void *place, size_t size, int protection, int flags, int descriptor, off_t offset) {
    if (descriptor >= 0 && fails_at("mmap", descriptor)) return MAP_FAILED;
    return PLAIN(mmap)(place, size, protection, flags, descriptor, offset);
}

void *mmap64(void *place, size_t size, int protection, int flags, int descriptor, off64_t offset) {
    if (descriptor >= 0 && fails_at("mmap", descriptor)) return MAP_FAILED;
    return PLAIN(mmap64)(place, size, protection, flags, descriptor, offset);
}

int rename(const char *from, const char *to) {
    if (fails("rename", to)) return -1;
    return PLAIN(rename)(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    if (fails("rename", to)) return -1;
    return PLAIN(renameat)(from_folder, from, to_folder, to);
}

int mkdir(const char *path, mode_t mode) {
    if (fails("mkdir", path)) return -1;
    return PLAIN(mkdir)(path, mode);
}

static int has_no_links(const char *path) {
    if (!number_of("FAULTS_NO_LINKS")) return fails("link", path);
    errno = EPERM;
    return 1;
}

int link(const char *from, const char *to) {
    if (has_no_links(to)) return -1;
    return PLAIN(link)(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    if (has_no_links(to)) return -1;
    return PLAIN(linkat)(from_folder, from, to_folder, to, flags);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static __typeof__(&clock_gettime) plain;
    if (!plain) plain = PLAIN(clock_gettime);
    int result = plain(clock, now);
    if (clock == CLOCK_REALTIME) now->tv_sec += number_of("FAULTS_CLOCK");
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int result = PLAIN(gettimeofday)(now, zone);
    now->tv_sec += number_of("FAULTS_CLOCK");
    return result;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}
