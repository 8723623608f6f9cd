/* SPDX-License-Identifier: MIT */
/* The server: one connection after another, one request each. */
#include "data/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void send_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        at += sent;
        size -= (size_t)sent;
    }
}

static void answer(server *s, int fd)
{
    char request[4096], head[512];
    size_t length = 0;
    ssize_t got;
    while (length < sizeof request - 1 && (got = recv(fd, request + length, sizeof request - 1 - length, 0)) > 0) {
        length += (size_t)got;
        request[length] = '\0';
        if (strstr(request, "\r\n\r\n"))
            break;
    }
    request[length] = '\0';
    s->requests++;
    if (strncmp(request, "GET /file ", 10) != 0) {
        const char *missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        send_all(fd, missing, strlen(missing));
        return;
    }
    const char *range = s->ranges ? strstr(request, "Range: bytes=") : NULL;
    size_t start = range ? strtoull(range + 13, NULL, 10) : 0;
    s->last_start = start;
    if (start >= s->size && range) {
        snprintf(head, sizeof head,
                 "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        send_all(fd, head, strlen(head));
        return;
    }
    size_t body = s->size - start;
    int used = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nConnection: close\r\n",
                        range ? "206 Partial Content" : "200 OK", body);
    if (range)
        used += snprintf(head + used, sizeof head - (size_t)used, "Content-Range: bytes %zu-%zu/%zu\r\n", start,
                         s->size - 1, s->size);
    snprintf(head + used, sizeof head - (size_t)used, "\r\n");
    send_all(fd, head, strlen(head));
    send_all(fd, s->data + start, s->cut && s->cut < body ? s->cut : body);
}

static void *serve(void *user)
{
    server *s = user;
    for (int fd; (fd = accept(s->listener, NULL, NULL)) >= 0;) {
        answer(s, fd);
        shutdown(fd, SHUT_RDWR);
        close(fd);
    }
    return NULL;
}

bool server_start(server *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(s->listener, 8) != 0 || getsockname(s->listener, (struct sockaddr *)&address, &length) != 0)
        return false;
    s->port = ntohs(address.sin_port);
    return pthread_create(&s->thread, NULL, serve, s) == 0;
}

void server_stop(server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
}
