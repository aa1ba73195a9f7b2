// The card's time: ticks of the bus clock or of a clock of its own, plus a
// constant by which time can be preset.
module time_base #(
    parameter bit ASYNC_TICK = 1'b0
) (
    input  logic        clk,
    input  logic        rst_n,
    input  logic        tick_clk,
    input  logic        set_tick,
    input  logic [31:0] tick_cycles,
    input  logic        preset,
    input  logic [63:0] preset_time,
    output logic        tick_is_busy,
    output logic [63:0] now
);
  logic [63:0] count, offset;

  generate
    if (ASYNC_TICK) begin : g_async
      logic tick_rst_n, restart;
      logic [31:0] cycles;
      logic [63:0] ticks;
      // Until somebody says otherwise a tick is one cycle; `cycles` is 0 then.
      reset_sync u_reset (
          .clk(tick_clk),
          .rst_n_in(rst_n),
          .rst_n(tick_rst_n)
      );
      word_handshake #(
          .BITS(32)
      ) u_cycles (
          .from_clk(clk),
          .from_rst_n(rst_n),
          .send(set_tick),
          .word_in(tick_cycles),
          .is_busy(tick_is_busy),
          .to_clk(tick_clk),
          .to_rst_n(tick_rst_n),
          .got(restart),
          .word_out(cycles)
      );
      tick_counter u_ticks (
          .clk(tick_clk),
          .rst_n(tick_rst_n),
          .restart(restart),
          .cycles(cycles == 32'd0 ? 32'd1 : cycles),
          .count(ticks)
      );
      gray_sync #(
          .BITS(64)
      ) u_gray (
          .from_clk(tick_clk),
          .from_rst_n(tick_rst_n),
          .count_in(ticks),
          .to_clk(clk),
          .to_rst_n(rst_n),
          .count_out(count)
      );
    end else begin : g_sync
      logic restart;
      logic [31:0] cycles;
      wire unused = tick_clk;
      assign tick_is_busy = 1'b0;
      always_ff @(posedge clk) begin
        if (!rst_n) begin
          restart <= 1'b0;
          cycles  <= 32'd1;
        end else begin
          restart <= set_tick;
          if (set_tick) cycles <= tick_cycles;
        end
      end
      tick_counter u_ticks (
          .clk(clk),
          .rst_n(rst_n),
          .restart(restart),
          .cycles(cycles),
          .count(count)
      );
    end
  endgenerate

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      offset <= 64'd0;
      now    <= 64'd0;
    end else begin
      if (preset) offset <= preset_time - count;
      now <= count + offset;
    end
  end
endmodule
