/* SPDX-License-Identifier: MIT */
/*
 * Communicators: several processes that work on one thing, each a rank from 0 to size - 1, and what they tell each
 * other.
 *
 *     tn_comm *comm = tn_comm_world();              // all processes of mpirun -n 4 ./program; without it, one rank
 *     tn_array *all = tn_comm_all_reduce(comm, x, TN_COMM_SUM);
 *
 * A collective is called by every rank of its communicator, all in the same order, with the same op, root and, unless
 * said otherwise, shapes and dtypes; with TANSO_COMM_CHECK=1 in the environment each call first compares what the ranks
 * ask for, and if that differs all of them get TN_ERR_STATE with both calls and their places. It computes its operand,
 * waits for the others, and gives an array that has its value, on the operand's device, of any dtype.
 *
 * Gradients. What has a gradient may go through these calls, and tn_backward then goes through them the other way
 * round, as if the losses of all ranks were added up: so every rank has to call tn_backward, in the same order, and
 * operands need a gradient on all ranks or on none. A rank that a collective gives nothing to, such as all but the root
 * of tn_comm_reduce, gets an empty array of shape (0,), from which it calls tn_backward like the others.
 *
 * Faults. A call that waits longer than TANSO_COMM_TIMEOUT seconds (300 unless set) ends with TN_ERR_IO, and so do
 * those, at once, that wait for a rank whose program has ended or has failed within a call; the message names the rank.
 * The communicator then gives that error for every further call.
 *
 * Processes are MPI's where a launcher (mpirun, srun) has started them: tn_comm_world loads libtanso-mpi.so, which is
 * beside libtanso.so; without it that is TN_ERR_UNSUPPORTED. MPI is ended when the process ends, if it was begun here.
 * Else they meet by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as tanso launch and schedulers set them. One thread
 * at a time may use communicators.
 *
 * GPUs. Arrays on GPUs go by NCCL (libtanso-nccl.so, which opens libnccl.so.2), where every rank has a GPU of its own:
 * in such a communicator the ranks of a call have their arrays all on GPUs, or all not; the root decides where it alone
 * has one. The call puts the work on the GPU's stream and returns. Where NCCL is absent, where ranks share a GPU, and
 * for messages, they go by way of the host; NCCL of another major version is TN_ERR_UNSUPPORTED.
 */
#ifndef TANSO_COMM_H
#define TANSO_COMM_H

#include <tanso/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_comm tn_comm;

/* Constructors never return NULL but where said: a communicator that could not be made gives its error for every call,
 * and tn_comm_status says why. */

/* All processes that were launched together; the same each time, never freed. */
TN_API tn_comm *tn_comm_world(void);
/* This process alone; the same each time, never freed. */
TN_API tn_comm *tn_comm_self(void);
/* The ranks of `comm` that give the same color, ordered by key, then by their rank in comm. All of comm's ranks call
 * it. One that gives a negative color is in none and gets NULL. */
TN_API tn_comm *tn_comm_split(tn_comm *comm, int color, int key);
/* Frees one that tn_comm_split made; all its ranks do so, but in their own time. NULL is ignored. */
TN_API void tn_comm_free(tn_comm *comm);
/* TN_OK, or what it was that went wrong, when it was made or in an earlier call. */
TN_API tn_status tn_comm_status(const tn_comm *comm);

/* Of this process; -1 with a latched error. The local rank is that among the ranks on this machine: the number of the
 * GPU to take. Machines (nodes) are numbered from 0. */
TN_API int tn_comm_rank(const tn_comm *comm);
TN_API int tn_comm_size(const tn_comm *comm);
TN_API int tn_comm_local_rank(const tn_comm *comm);
TN_API int tn_comm_local_size(const tn_comm *comm);
TN_API int tn_comm_node(const tn_comm *comm);
TN_API int tn_comm_node_count(const tn_comm *comm);

/* Waits until every rank is here. */
TN_API tn_status tn_comm_barrier(tn_comm *comm) TN_MUST_CHECK;

/* How elements of several ranks become one, as tn_add, tn_multiply, tn_maximum and tn_minimum do it (of bool: or, and,
 * or, and). The mean is for floating and complex dtypes alone. All ranks get the same bits, run after run. */
typedef enum tn_comm_op { TN_COMM_SUM, TN_COMM_MEAN, TN_COMM_MAX, TN_COMM_MIN, TN_COMM_PROD } tn_comm_op;

/* x of all ranks, combined element by element: for every rank, or for the root alone; the others get shape (0,). */
TN_API tn_array *tn_comm_all_reduce(tn_comm *comm, const tn_array *x, tn_comm_op op);
TN_API tn_array *tn_comm_reduce(tn_comm *comm, const tn_array *x, tn_comm_op op, int root);
/* The root's x for every rank. The others' x is not looked at, and may be NULL; their result is then on the current
 * device. */
TN_API tn_array *tn_comm_broadcast(tn_comm *comm, const tn_array *x, int root);
/* x of all ranks behind one another along a new first axis, (size, ...): for every rank, or for the root alone; the
 * others get shape (0,). */
TN_API tn_array *tn_comm_all_gather(tn_comm *comm, const tn_array *x);
TN_API tn_array *tn_comm_gather(tn_comm *comm, const tn_array *x, int root);
/* The other way round: rank r gets element r of the root's x along its first axis, whose extent is size. The others'
 * x is as in tn_comm_broadcast. */
TN_API tn_array *tn_comm_scatter(tn_comm *comm, const tn_array *x, int root);
/* Rank r gets element r along the first axis, whose extent is size, of what tn_comm_all_reduce would give. */
TN_API tn_array *tn_comm_reduce_scatter(tn_comm *comm, const tn_array *x, tn_comm_op op);
/* Element r of x along the first axis, whose extent is size, goes to rank r, and what rank r sends is element r of the
 * result. */
TN_API tn_array *tn_comm_all_to_all(tn_comm *comm, const tn_array *x);

/*
 * x to another rank, and from one: messages between two ranks with one tag, a number from 0 to 32767, arrive in order.
 * Sending may return before the other receives, but need not: two ranks that both send first may wait for each other.
 * What tn_comm_send gives has shape (0,); tn_comm_receive gives what was sent, on the current device.
 *
 * In backward the receiver sends the gradient back, and the sender, who calls tn_backward from what tn_comm_send gave,
 * or from something it was connected to, receives it. `after` (may be NULL) is what an earlier tn_comm_send of this
 * rank gave: backward goes from here on to there.
 */
TN_API tn_array *tn_comm_send(tn_comm *comm, const tn_array *x, int to, int tag);
TN_API tn_array *tn_comm_receive(tn_comm *comm, int from, int tag, const tn_array *after);
/* x, from which backward goes on to `sent` (of shape (0,)), too: ChainerMN's pseudo_connect. */
TN_API tn_array *tn_comm_connect(const tn_array *sent, const tn_array *x);

/*
 * Several devices of one process: each is a rank, and a call is made once for all of them.
 *
 *     tn_comm *comm = tn_comm_devices(TN_DEVICES(tn_cuda(0), tn_cuda(1)));
 *     tn_array *x[] = {here, there}, *sums[2];
 *     tn_status status = tn_comm_all_reduce_each(comm, x, TN_COMM_SUM, sums);   // sums[r] on rank r's device
 *
 * These calls are recorded as tn_to is: nothing is computed, nobody waits, and gradients go through them to any order.
 * x[r] is an array on the device of rank r; result[r], arrays of the current scope, are too. If a call fails they are
 * errors. The calls above are of one rank each, so for such a communicator they are TN_ERR_UNSUPPORTED; and these here
 * work for communicators of processes, too, of whose ranks each process has one: x[0] and result[0] are its own. What
 * one device sends to another is tn_to; a part of a communicator is one of fewer devices.
 */
/* Of devices up to the zero device, as TN_DEVICES makes them; each one once, else TN_ERR_VALUE, and one that can be
 * used, else TN_ERR_DEVICE. tn_comm_free frees it; arrays that came from it do not need it. */
TN_API tn_comm *tn_comm_devices(const tn_device *devices);
/* The device of a rank of this process; the zero device with a latched error for another communicator or rank. */
TN_API tn_device tn_comm_device(const tn_comm *comm, int rank);
/* x of one shape and dtype, combined element by element: for every rank, or for the root. */
TN_API tn_status tn_comm_all_reduce_each(tn_comm *comm, tn_array *const *x, tn_comm_op op,
                                         tn_array **result) TN_MUST_CHECK;
TN_API tn_array *tn_comm_reduce_each(tn_comm *comm, tn_array *const *x, tn_comm_op op, int root);
/* The root's x for every rank. */
TN_API tn_status tn_comm_broadcast_each(tn_comm *comm, const tn_array *x, int root, tn_array **result) TN_MUST_CHECK;
/* x of one shape and dtype along a new first axis, (size, ...): for every rank, or for the root. */
TN_API tn_status tn_comm_all_gather_each(tn_comm *comm, tn_array *const *x, tn_array **result) TN_MUST_CHECK;
TN_API tn_array *tn_comm_gather_each(tn_comm *comm, tn_array *const *x, int root);
/* Element r along the first axis, whose extent is size, for rank r: of the root's x; of what tn_comm_all_reduce_each
 * would give; and the elements r of all ranks' x, along the first axis. */
TN_API tn_status tn_comm_scatter_each(tn_comm *comm, const tn_array *x, int root, tn_array **result) TN_MUST_CHECK;
TN_API tn_status tn_comm_reduce_scatter_each(tn_comm *comm, tn_array *const *x, tn_comm_op op,
                                             tn_array **result) TN_MUST_CHECK;
TN_API tn_status tn_comm_all_to_all_each(tn_comm *comm, tn_array *const *x, tn_array **result) TN_MUST_CHECK;

#ifndef TN_NO_MACROS
#define tn_comm_devices(...) TN_HERE(tn_comm_devices(__VA_ARGS__))
#define tn_comm_all_reduce_each(...) TN_HERE(tn_comm_all_reduce_each(__VA_ARGS__))
#define tn_comm_reduce_each(...) TN_HERE(tn_comm_reduce_each(__VA_ARGS__))
#define tn_comm_broadcast_each(...) TN_HERE(tn_comm_broadcast_each(__VA_ARGS__))
#define tn_comm_all_gather_each(...) TN_HERE(tn_comm_all_gather_each(__VA_ARGS__))
#define tn_comm_gather_each(...) TN_HERE(tn_comm_gather_each(__VA_ARGS__))
#define tn_comm_scatter_each(...) TN_HERE(tn_comm_scatter_each(__VA_ARGS__))
#define tn_comm_reduce_scatter_each(...) TN_HERE(tn_comm_reduce_scatter_each(__VA_ARGS__))
#define tn_comm_all_to_all_each(...) TN_HERE(tn_comm_all_to_all_each(__VA_ARGS__))
#define tn_comm_world() TN_HERE(tn_comm_world())
#define tn_comm_split(...) TN_HERE(tn_comm_split(__VA_ARGS__))
#define tn_comm_all_reduce(...) TN_HERE(tn_comm_all_reduce(__VA_ARGS__))
#define tn_comm_reduce(...) TN_HERE(tn_comm_reduce(__VA_ARGS__))
#define tn_comm_broadcast(...) TN_HERE(tn_comm_broadcast(__VA_ARGS__))
#define tn_comm_all_gather(...) TN_HERE(tn_comm_all_gather(__VA_ARGS__))
#define tn_comm_gather(...) TN_HERE(tn_comm_gather(__VA_ARGS__))
#define tn_comm_scatter(...) TN_HERE(tn_comm_scatter(__VA_ARGS__))
#define tn_comm_reduce_scatter(...) TN_HERE(tn_comm_reduce_scatter(__VA_ARGS__))
#define tn_comm_all_to_all(...) TN_HERE(tn_comm_all_to_all(__VA_ARGS__))
#define tn_comm_send(...) TN_HERE(tn_comm_send(__VA_ARGS__))
#define tn_comm_receive(...) TN_HERE(tn_comm_receive(__VA_ARGS__))
#define tn_comm_connect(...) TN_HERE(tn_comm_connect(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
