// Wishbone B4, pipelined, to the card's AXI4-Lite. Wishbone answers in order, so
// reads wait until all stores are answered and stores until all reads are.
//
// Wishbone names no master and no mode: the interconnect tags each request with
// them (`wb_master`, `wb_is_privileged`).
module wishbone_adapter #(
    parameter int ID_BITS   = 3,
    parameter int ADDR_BITS = 21
) (
    input  logic                 clk,
    input  logic                 rst_n,
    input  logic                 wb_cyc,
    input  logic                 wb_stb,
    input  logic                 wb_we,
    input  logic [ADDR_BITS-1:0] wb_adr,
    input  logic [31:0]          wb_dat_w,
    input  logic [3:0]           wb_sel,
    input  logic [ID_BITS-1:0]   wb_master,
    input  logic                 wb_is_privileged,
    output logic                 wb_stall,
    output logic                 wb_ack,
    output logic                 wb_err,
    output logic [31:0]          wb_dat_r,

    output logic                 m_axi_awvalid,
    input  logic                 m_axi_awready,
    output logic [ADDR_BITS-1:0] m_axi_awaddr,
    output logic [ID_BITS-1:0]   m_axi_awid,
    output logic [2:0]           m_axi_awprot,
    output logic                 m_axi_wvalid,
    input  logic                 m_axi_wready,
    output logic [31:0]          m_axi_wdata,
    output logic [3:0]           m_axi_wstrb,
    input  logic                 m_axi_bvalid,
    output logic                 m_axi_bready,
    input  logic [1:0]           m_axi_bresp,
    output logic                 m_axi_arvalid,
    input  logic                 m_axi_arready,
    output logic [ADDR_BITS-1:0] m_axi_araddr,
    output logic [ID_BITS-1:0]   m_axi_arid,
    output logic [2:0]           m_axi_arprot,
    input  logic                 m_axi_rvalid,
    output logic                 m_axi_rready,
    input  logic [31:0]          m_axi_rdata,
    input  logic [1:0]           m_axi_rresp
);
  // Requests taken and not answered: the card has at most four stores under way.
  logic [2:0] unanswered;
  logic are_stores;

  // A master that ends its cycle gives up the answers that are still to come:
  // they must have come before another cycle's requests are taken.
  logic is_given_up;

  wire may_store = !is_given_up && (unanswered == 3'd0 || (are_stores && unanswered != 3'd7));
  wire may_read = !is_given_up && unanswered == 3'd0;
  // The card takes the two halves of a store together when they come together:
  // its two `ready` are one then, and depend on no `valid`.
  wire store = wb_cyc && wb_stb && wb_we && may_store && m_axi_awready && m_axi_wready;
  wire read = wb_cyc && wb_stb && !wb_we && may_read && m_axi_arready;
  wire answered = m_axi_bvalid || m_axi_rvalid;
  wire [2:0] unanswered_next = unanswered + {2'd0, store || read} - {2'd0, answered};

  assign wb_stall = wb_we ? !(may_store && m_axi_awready && m_axi_wready)
                          : !(may_read && m_axi_arready);
  assign m_axi_awvalid = store;
  assign m_axi_awaddr = wb_adr;
  assign m_axi_awid = wb_master;
  assign m_axi_awprot = {2'b00, wb_is_privileged};
  assign m_axi_wvalid = store;
  assign m_axi_wdata = wb_dat_w;
  assign m_axi_wstrb = wb_sel;
  assign m_axi_bready = 1'b1;
  assign m_axi_arvalid = read;
  assign m_axi_araddr = wb_adr;
  assign m_axi_arid = wb_master;
  assign m_axi_arprot = {2'b00, wb_is_privileged};
  assign m_axi_rready = 1'b1;

  wire is_error = m_axi_bvalid ? m_axi_bresp != 2'b00 : m_axi_rresp != 2'b00;
  assign wb_ack = answered && !is_error && wb_cyc && !is_given_up;
  assign wb_err = answered && is_error && wb_cyc && !is_given_up;
  assign wb_dat_r = m_axi_rdata;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      unanswered  <= 3'd0;
      are_stores  <= 1'b0;
      is_given_up <= 1'b0;
    end else begin
      unanswered  <= unanswered_next;
      is_given_up <= (is_given_up || !wb_cyc) && unanswered_next != 3'd0;
      if (store || read) are_stores <= store;
    end
  end
endmodule
